package opa

import "testing"

func BenchmarkDecide(b *testing.B) {
	p := shipped(b)
	for _, name := range []string{"allow_read", "allow_draft", "approval_required", "cancelled", "resource_denied"} {
		input := sample(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Decide(b.Context(), input); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
