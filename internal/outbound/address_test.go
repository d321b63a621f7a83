package outbound

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAddressesThatAreRefused(t *testing.T) {
	for _, a := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.8.8.8", "169.254.169.254", "172.16.0.1", "172.31.255.255",
		"192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.9", "224.0.0.1", "239.1.1.1",
		"240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1",
		"2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
	} {
		assert.Error(t, CheckAddress(netip.MustParseAddr(a), nil), a)
	}
	assert.Error(t, CheckAddress(netip.Addr{}, nil))
	for _, a := range []string{"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.0.1", "172.32.0.1",
		"192.0.1.1", "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8", "2001:200::1", "2606:4700::1111", "2a00:1450::1"} {
		assert.NoError(t, CheckAddress(netip.MustParseAddr(a), nil), a)
	}
}

func TestListedNetworks(t *testing.T) {
	networks := prefixes("10.1.0.0/16", "fd00:1::/32", "fe80::/10")
	for a, reached := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "::ffff:10.2.0.1": false, "fd00:1::5": true, "fd00:2::5": false,
		"fe80::1%eth0": true, "169.254.169.254": false, "8.8.8.8": true,
	} {
		assert.Equal(t, reached, CheckAddress(netip.MustParseAddr(a), networks) == nil, a)
	}
}

// What is listed is private: a network that is wider would let through the addresses of the machine and of its cloud.
func TestNetworksThatCanBeListed(t *testing.T) {
	for n, want := range map[string]string{
		"10.0.0.0/8": "", "10.1.0.0/16": "", "127.0.0.0/8": "", "::1/128": "", "169.254.169.254/32": "", "fd00::/8": "", "64:ff9b::/96": "",
		"0.0.0.0/0": "not within one private range", "8.0.0.0/7": "not within", "1.1.1.1/32": "not within", "::/0": "not within", "::/3": "not within", "4000::/2": "not within",
		"10.1.2.3/16": "write 10.1.0.0/16",
	} {
		err := CheckNetwork(netip.MustParsePrefix(n))
		if want == "" {
			assert.NoError(t, err, n)
		} else {
			assert.ErrorContains(t, err, want, n)
		}
	}
}
