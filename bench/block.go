package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// serial is the mean time of n operations, one after another.
func serial(n int, op func(i int) error) (float64, error) {
	start := time.Now()
	for i := range n {
		if err := op(i); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() / float64(n), nil
}

// middle is the median time of n operations, one after another.
func middle(n int, op func(i int) error) (float64, error) {
	times := make([]float64, n)
	for i := range n {
		start := time.Now()
		if err := op(i); err != nil {
			return 0, err
		}
		times[i] = time.Since(start).Seconds()
	}
	return median(times), nil
}

// together is the time of a block over the number of its operations: n of them, shared evenly by callers who each do one
// after another.
func together(callers, n int, op func(i int) error) (float64, error) {
	each := n / callers
	errs := make([]error, callers)
	var ready, all sync.WaitGroup
	ready.Add(callers)
	begin := make(chan struct{})
	for c := range callers {
		all.Go(func() {
			ready.Done()
			<-begin
			for i := c * each; i < (c+1)*each; i++ {
				if errs[c] = op(i); errs[c] != nil {
					return
				}
			}
		})
	}
	ready.Wait()
	start := time.Now()
	close(begin)
	all.Wait()
	return time.Since(start).Seconds() / float64(callers*each), errors.Join(errs...)
}

// prepare is together, untimed, for any number of operations.
func prepare(n int, op func(i int) error) error {
	const callers = 256
	next := make(chan int)
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	var all sync.WaitGroup
	for range min(callers, n) {
		all.Go(func() {
			for i := range next {
				if err := op(i); err != nil {
					stop(err)
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
