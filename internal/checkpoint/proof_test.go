package checkpoint

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	formats "github.com/transparency-dev/formats/proof"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// The example of C2SP's tlog-proof, without its cosignatures, which are shortened there.
const exampleProof = `c2sp.org/tlog-proof@v1
extra YWdlLXYxLjIuMS1kYXJ3aW4tYXJtNjQudGFyLmd6kYXJ3aW4tYXJ=
index 73894
gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=
B95lDa8R83lS8n0eG+o0buTxRKQTYFi//1U8anccXmA=
EKNzoDWG8LGC0Yp9o+sv3qllpMP9uHQ9B20KNL+Q1zs=
RoopEkOdqkYqMB4MJXrbt/hMjOxsVn0IrWjpz1ZMMes=
AHCioX9nLjsrse6YhjRRmk1WUEirVOLLRoOQ6vfO5vk=

example.com/fancylog
109482
sFodV/vSp5O8n9a8QpW6PRY97tfOSW5bsc2Xl/EQi08=

— example.com/fancylog AAAAAA==
`

// The example of add-checkpoint in C2SP's tlog-witness.
const exampleGrowth = `old 20852014
PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=
5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=
/6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=

example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++qbSzm9Q=
`

func TestProofsOfTheStandards(t *testing.T) {
	text := strings.Replace(exampleProof, "extra YWdlLXYxLjIuMS1kYXJ3aW4tYXJtNjQudGFyLmd6kYXJ3aW4tYXJ=", "extra b3BhcXVl", 1)
	entry, growth, err := ParseProof([]byte(text))
	require.NoError(t, err)
	require.Nil(t, growth)
	var theirs formats.TLogProof
	require.NoError(t, theirs.Unmarshal([]byte(text)))
	require.Equal(t, theirs.Index, uint64(entry.Index))
	require.Len(t, entry.Hashes, len(theirs.Hashes))
	for i, h := range theirs.Hashes {
		require.EqualValues(t, h, entry.Hashes[i])
	}
	require.Equal(t, string(theirs.Checkpoint), string(entry.Signed))
	theirs.ExtraData = nil
	require.Equal(t, string(theirs.Marshal()), entry.Text())

	entry, growth, err = ParseProof([]byte(exampleGrowth))
	require.NoError(t, err)
	require.Nil(t, entry)
	require.EqualValues(t, 20852014, growth.Old)
	require.Len(t, growth.Hashes, 4)
	require.Equal(t, exampleGrowth, growth.Text())
}

func TestTextsThatAreNoProof(t *testing.T) {
	plain := strings.Replace(exampleProof, "extra YWdlLXYxLjIuMS1kYXJ3aW4tYXJtNjQudGFyLmd6kYXJ3aW4tYXJ=\n", "", 1)
	_, _, err := ParseProof([]byte(plain))
	require.NoError(t, err)
	change := func(from, to string) string {
		require.Contains(t, plain, from)
		return strings.Replace(plain, from, to, 1)
	}
	hash := "gSKyXoYZUgZ6jduWYrkDOARinOMGJveXjgMkBTcdPlQ=\n"
	for name, text := range map[string]string{
		"nothing":                 "",
		"a checkpoint":            exampleGrowth[strings.Index(exampleGrowth, "\n\n")+2:],
		"another version":         change("@v1", "@v2"),
		"no index":                change("index 73894\n", ""),
		"a zero in front":         change("index 7", "index 07"),
		"a negative index":        change("index 7", "index -7"),
		"two spaces":              change("index 7", "index  7"),
		"a hash too short":        change("gSKy", ""),
		"a hash that is none":     change("gSKy", "gSK_"),
		"a carriage return":       change("PlQ=\n", "PlQ=\r\n"),
		"more hashes than levels": change(hash, strings.Repeat(hash, 60)),
		"two indices":             change("index 73894\n", "index 73894\nindex 73894\n"),
		"broken extra data":       exampleProof,
		"extra data twice":        change("index", "extra AAAA\nextra AAAA\nindex"),
		"no empty line":           change("\n\nexample", "\nexample"),
		"growth from no size":     strings.Replace(exampleGrowth, "old 20852014", "old ", 1),
		"growth from a sign":      strings.Replace(exampleGrowth, "old 2", "old +2", 1),
		"growth with a hole":      strings.Replace(exampleGrowth, "PlRN", "Pl", 1),
		"too long":                plain + strings.Repeat("x", MaxBytes),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ParseProof([]byte(text))
			require.Error(t, err)
		})
	}
}

// tree is a small log whose nodes all lie open.
func tree(entries ...string) (head merkle.Head, leaves []merkle.Hash) {
	var e merkle.Edge
	for _, text := range entries {
		leaves = append(leaves, merkle.Leaf([]byte(text)))
		e.Append(leaves[len(leaves)-1], nil)
	}
	return e.Head(), leaves
}

func TestCheckProofs(t *testing.T) {
	key, foreign := newSigner(t, sofa), newSigner(t, sofa)
	two, leaves := tree("a", "b")
	one, _ := tree("a")
	forked, _ := tree("A")
	sign := func(head merkle.Head, by Signer) []byte {
		signed, err := Sign(Checkpoint{Origin: sofa, Head: head}, by)
		require.NoError(t, err)
		return signed
	}
	trusted := []Verifier{key.Verifier}

	entry := &EntryProof{Index: 1, Hashes: leaves[:1], Signed: sign(two, key)}
	c, err := entry.Check([]byte("b"), trusted)
	require.NoError(t, err)
	require.Equal(t, Checkpoint{Origin: sofa, Head: two}, c)
	_, err = entry.Check([]byte("a"), trusted)
	require.ErrorIs(t, err, merkle.ErrProof)
	_, err = entry.Check([]byte("b"), []Verifier{foreign.Verifier})
	require.ErrorIs(t, err, ErrUntrusted)
	elsewhere := *entry
	elsewhere.Index = 0
	_, err = elsewhere.Check([]byte("b"), trusted)
	require.ErrorIs(t, err, merkle.ErrProof)

	growth := &GrowthProof{Old: 1, Hashes: leaves[1:], Signed: sign(two, key)}
	c, err = growth.Check(Checkpoint{Origin: sofa, Head: one}, trusted)
	require.NoError(t, err)
	require.Equal(t, Checkpoint{Origin: sofa, Head: two}, c)
	_, err = growth.Check(Checkpoint{Origin: sofa, Head: forked}, trusted)
	require.ErrorIs(t, err, merkle.ErrProof)
	_, err = growth.Check(Checkpoint{Origin: "example.com/other", Head: one}, trusted)
	require.ErrorContains(t, err, "example.com/other")
	_, err = growth.Check(Checkpoint{Origin: sofa, Head: two}, trusted)
	require.ErrorContains(t, err, "begins at 1 entries, and the older checkpoint has 2")
	_, err = growth.Check(Checkpoint{Origin: sofa, Head: one}, []Verifier{foreign.Verifier})
	require.ErrorIs(t, err, ErrUntrusted)
}

// What can be read is written again as it was, but for extra data; and another implementation reads the same.
func FuzzParseProof(f *testing.F) {
	f.Add([]byte(exampleProof))
	f.Add([]byte(strings.Replace(exampleProof, "tYXJ=", "tYXI=", 1)))
	f.Add([]byte(exampleGrowth))
	f.Add([]byte("c2sp.org/tlog-proof@v1\nindex 0\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		entry, growth, err := ParseProof(text)
		switch {
		case err != nil:
		case growth != nil:
			require.Equal(t, string(text), growth.Text())
		default:
			require.NotNil(t, entry)
			again := entry.Text()
			if !strings.HasPrefix(string(text), entryHeader+"\nextra ") {
				require.Equal(t, string(text), again)
			}
			var theirs formats.TLogProof
			require.NoError(t, theirs.Unmarshal([]byte(fmt.Sprintf("%s\n", again))))
			require.EqualValues(t, entry.Index, theirs.Index)
			require.Len(t, theirs.Hashes, len(entry.Hashes))
		}
	})
}
