// Package cursor makes the names by which people and programs go on with a listing. A cursor says which row it is of,
// belongs to one listing of one store, and depends on no time and on no number of a row.
package cursor

import (
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// ErrForged says that no store with this key gave the cursor, or not like that.
var ErrForged = errors.New("it is no cursor that this state has given")

// OtherError says which listing a cursor is of, if it is genuine and of another one.
type OtherError struct{ Listing string }

func (e *OtherError) Error() string { return fmt.Sprintf("it is a cursor of %q", e.Listing) }

// content is what a cursor holds, before its tag. Whoever holds a cursor can read it, and cannot make another.
type content struct {
	Tenant  string    `json:"t"`
	Listing string    `json:"l"`
	Row     ijson.Raw `json:"r"`
}

// tagLength is how many digits of the HMAC a cursor holds: 128 bits.
const tagLength = 32

// Make gives the cursor of a row in a tenant's listing, which names its filters too.
func Make(key []byte, tenant, listing string, row any) (string, error) {
	name, err := ijson.Marshal(row)
	if err != nil {
		return "", err
	}
	held, err := ijson.Marshal(content{tenant, listing, name})
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(held, tag(key, held)...)), nil
}

// Read takes the row out of a cursor that Make gave with the same key, tenant and listing. Any other is refused with
// ErrForged or an OtherError.
func Read(key []byte, tenant, listing, cursor string, row any) error {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	// The decoder passes over line breaks, and over the last bits where they stand for nothing.
	if err != nil || len(b) < tagLength || base64.RawURLEncoding.EncodeToString(b) != cursor {
		return ErrForged
	}
	held, given := b[:len(b)-tagLength], b[len(b)-tagLength:]
	if !hmac.Equal(given, []byte(tag(key, held))) {
		return ErrForged
	}
	var c content
	if err := ijson.Unmarshal(held, &c); err != nil {
		return err
	}
	if c.Tenant != tenant {
		return ErrForged // what another tenant has listed is not told
	}
	if c.Listing != listing {
		return &OtherError{c.Listing}
	}
	return ijson.Unmarshal(c.Row, row)
}

func tag(key, held []byte) string { return ijson.HMAC(key, "govern cursor v1", held)[:tagLength] }
