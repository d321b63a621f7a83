package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
)

// BenchmarkDispatch is one whole dispatch that runs a tool, by one caller and by 64 of as many tasks.
func BenchmarkDispatch(b *testing.B) {
	for name, proposal := range map[string]string{
		"read":      `{"call_id":"a","tool":"read_document","arguments":{"path":"/warehouse/labels.txt"}}`,
		"calculate": `{"call_id":"a","tool":"calculate","arguments":{"op":"multiply","a":4,"b":21}}`,
	} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				l := newLab(b, func(c *config.Config) {
					for name, p := range c.Profiles {
						p.MaxSteps = 1 << 30
						c.Profiles[name] = p
					}
				})
				for i := range callers {
					l.create(fmt.Sprintf("bench-%d", i), l.who.Actor)
				}
				b.ReportAllocs()
				var next atomic.Int64
				b.SetParallelism((callers + 1) / 2)
				b.ResetTimer()
				one := func(task string) {
					r, err := l.dispatcher.Dispatch(context.Background(), l.who, task, dispatch.Origin{Door: "test"}, []byte(proposal))
					if err != nil || r.Status != "ok" {
						b.Fatal(err, r.Status, r.Reasons)
					}
				}
				if callers == 1 {
					for range b.N {
						one("bench-0")
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					task := fmt.Sprintf("bench-%d", next.Add(1)%int64(callers))
					for pb.Next() {
						one(task)
					}
				})
			})
		}
	}
}
