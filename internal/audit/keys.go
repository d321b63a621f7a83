package audit

import (
	"bytes"
	"slices"
)

// signing are the keys that sign checkpoints, as the entries so far have it.
type signing struct {
	keys [][]byte
	// lost says that an entry before is gone or cannot be read, so that nobody knows which keys there were.
	lost bool
}

// change holds a change of the signing keys against the keys before it. What it says they are counts from here on.
func (a *auditor) change(e *entry) {
	before, act, keys := a.signing, string(e.str(eAct)), e.texts(e.at[eKeys])
	a.signing = signing{}
	for _, key := range keys {
		a.signing.keys = append(a.signing.keys, bytes.Clone(key)) // the text of the entry does not stay
	}
	if !before.leadsTo(act, keys) {
		a.at(e, KeysDiffer, "the change %q of the signing keys does not lead to these from those before it", plainText([]byte(act)))
	}
}

// leadsTo says whether a change leads to these keys.
func (s signing) leadsTo(act string, keys [][]byte) bool {
	fresh := len(keys) > 0 && len(keys[len(keys)-1]) > 0 // that the last key is there, and was not before
	for _, key := range s.keys {
		// Whatever becomes of the keys, a log keeps its name.
		fresh = fresh && !bytes.Equal(key, keys[len(keys)-1]) && bytes.Equal(origin(key), origin(keys[len(keys)-1]))
	}
	switch act {
	case "new": // the first, or in place of lost ones
		return len(keys) == 1 && fresh
	case "rotate":
		if s.lost {
			return len(keys) == 2 && signing{keys: keys[:1]}.leadsTo(act, keys)
		}
		return len(s.keys) == 1 && len(keys) == 2 && bytes.Equal(keys[0], s.keys[0]) && fresh
	case "finish":
		return s.lost && len(keys) == 1 || len(s.keys) == 2 && slices.EqualFunc(keys, s.keys[1:], bytes.Equal)
	}
	return false
}

// origin is the name of the log in a public key.
func origin(key []byte) []byte {
	name, _, _ := bytes.Cut(key, []byte("+"))
	return name
}
