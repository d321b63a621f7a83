package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"
)

// What one transaction of a stream reads at most; the bytes may be exceeded by one row.
const (
	pageRows  = 500
	pageBytes = 1 << 20
)

// stream is rows that are read page by page, each in a transaction that is over before the consumer sees its rows. At
// tells where a row stands in their order.
type stream[Row, At any] struct {
	sql string
	// bind binds everything, so that the rows behind after come.
	bind func(stmt *sqlite.Stmt, after At)
	scan func(*sqlite.Stmt) (Row, error)
	at   func(*sqlite.Stmt) At
	size func(Row) int
}

// read gives the rows behind after: at most limit, if that is not 0.
func (s stream[Row, At]) read(ctx context.Context, r *readers, after At, limit int, yield func(Row, error) bool) {
	for more, left := true, limit; more; {
		var page []Row
		var err error
		if page, after, more, err = s.page(ctx, r, after, left); err != nil {
			var none Row
			yield(none, err)
			return
		}
		for _, row := range page {
			if !yield(row, nil) {
				return
			}
		}
		if left -= len(page); limit > 0 && left == 0 {
			return
		}
	}
}

// page reads as much as one transaction should. Left is what is wanted at most; 0 or less is no limit.
func (s stream[Row, At]) page(ctx context.Context, r *readers, after At, left int) (page []Row, last At, more bool, err error) {
	last = after
	most := pageRows
	if left > 0 {
		most = min(most, left)
	}
	size := 0
	err = r.snapshot(ctx, func(conn *sqlite.Conn) error {
		return each(conn, s.sql, func(stmt *sqlite.Stmt) { s.bind(stmt, after) }, func(stmt *sqlite.Stmt) (bool, error) {
			row, err := s.scan(stmt)
			if err != nil {
				return false, err
			}
			page, last = append(page, row), s.at(stmt)
			size += s.size(row)
			more = len(page) == most || size >= pageBytes
			return !more, nil
		})
	})
	return page, last, more, err
}
