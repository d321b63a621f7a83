package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// SigningKeys is the last word on record on the keys that sign checkpoints of the log. The act is empty if there is none.
func (d *Dispatcher) SigningKeys(ctx context.Context) (act string, keys []string, err error) {
	last, found, err := d.store.LastEntry(ctx, "", KindKey)
	if err != nil || !found {
		return "", nil, err
	}
	var e KeyEntry
	if err := ijson.Unmarshal(last.Body, &e); err != nil {
		return "", nil, fmt.Errorf("the last change of the signing keys in the log cannot be read: %w", err)
	}
	return e.Act, e.Keys, nil
}

// EverySigningKey gives the public halves that were ever on record as signing, each once.
func (d *Dispatcher) EverySigningKey(ctx context.Context) (keys []string, err error) {
	for entry, err := range d.store.EntriesIn(ctx, "", "", KindKey, Span[Place]{}) {
		if err != nil {
			return nil, err
		}
		var e KeyEntry
		if err := ijson.Unmarshal(entry.Body, &e); err != nil {
			return nil, fmt.Errorf("a change of the signing keys in the log cannot be read: %w", err)
		}
		for _, key := range e.Keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys, nil
}

// RecordSigningKeys puts on record which keys sign from here on, by their public halves.
func (d *Dispatcher) RecordSigningKeys(ctx context.Context, act string, keys []string, by string) error {
	return d.record(ctx, func(t Task) (Commit, bool, error) {
		c, err := nextKeys(t, act, keys, by, d.now(t))
		return c, true, err
	})
}

func nextKeys(t Task, act string, keys []string, by string, now time.Time) (Commit, error) {
	c := begin(t, now)
	e := KeyEntry{Act: act, Keys: keys, By: by}
	return c, c.record(KindKey, now, &e.EntryHeader, &e)
}
