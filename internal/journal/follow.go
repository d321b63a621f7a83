package journal

import (
	"context"
	"iter"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Follow gives every entry from the walk's place on once, in the order of the log, and then each new one, whichever process
// appends it, until ctx ends. It calls wait whenever it has given all that there are; wait returns when it is time to look
// again. Between two entries nothing is held: a consumer may take as long as it likes.
//
// It ends with an error if the log becomes another than the one that was given so far, or wait fails; with none if ctx ends.
func Follow(ctx context.Context, w *Walk, wait func(context.Context) error) iter.Seq2[dispatch.Entry, error] {
	return func(yield func(dispatch.Entry, error) bool) {
		for ctx.Err() == nil {
			head, err := w.log.Head(ctx)
			if err == nil {
				for e, failed := range w.To(ctx, head) {
					if err = failed; err != nil {
						break
					}
					if !yield(e, nil) {
						return
					}
				}
			}
			if err == nil {
				err = wait(ctx)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(dispatch.Entry{}, err)
				}
				return
			}
		}
	}
}
