package outbound

import (
	"errors"
	"fmt"
	"net/netip"
)

// special are the ranges of addresses that are not of the public Internet, or that lead to others: they are refused unless a
// network in them is listed. The last three are what IPv6 has not given to anybody, with everything of that kind that has no name here.
var special = []struct {
	what   string
	ranges []netip.Prefix
}{
	{"an unspecified", prefixes("0.0.0.0/8", "::/128")},
	{"a private", prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")},
	{"a shared", prefixes("100.64.0.0/10")},
	{"a loopback", prefixes("127.0.0.0/8", "::1/128")},
	{"a link-local", prefixes("169.254.0.0/16", "fe80::/10")},
	{"a special", prefixes("192.0.0.0/24", "192.88.99.0/24", "2001::/23")},
	{"a documentation", prefixes("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")},
	{"a benchmarking", prefixes("198.18.0.0/15")},
	{"a multicast", prefixes("224.0.0.0/4", "ff00::/8")},
	{"a reserved", prefixes("240.0.0.0/4")},
	{"a translated", prefixes("::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16")},
	{"an unassigned", prefixes("::/3", "4000::/2", "8000::/1")},
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// CheckAddress says why an address is not to be reached, or nil. Networks are those that may be, though they are not public.
func CheckAddress(address netip.Addr, networks []netip.Prefix) error {
	address = address.WithZone("") // no network contains an address with a zone
	if address.Is4In6() {
		address = address.Unmap() // the kernel reaches the address inside
	}
	if !address.IsValid() {
		return errors.New("it is no address")
	}
	for _, n := range networks {
		if n.Contains(address) {
			return nil
		}
	}
	for _, s := range special {
		for _, r := range s.ranges {
			if r.Contains(address) {
				return fmt.Errorf("%s is %s address, and no network that is listed has it", address, s.what)
			}
		}
	}
	return nil
}

// CheckNetwork says why a network cannot be listed, or nil: it lies within one range of addresses that are not public. One
// that is wider would let through more than was thought of.
func CheckNetwork(network netip.Prefix) error {
	if network != network.Masked() {
		return fmt.Errorf("%s has bits behind its length; write %s", network, network.Masked())
	}
	for _, s := range special[:len(special)-1] {
		for _, r := range s.ranges {
			if r.Bits() <= network.Bits() && r.Contains(network.Addr()) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not within one private range; public addresses need not be listed, and of the others name each network by itself", network)
}
