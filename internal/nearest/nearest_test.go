package nearest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/nearest"
)

func TestName(t *testing.T) {
	known := []string{"readable", "writable", "tools", "max_steps", "id", "ID_x"}
	tests := []struct{ name, want string }{
		{"redable", "readable"},
		{"raedable", "readable"},
		{"READABLE", "readable"},
		{"tool", "tools"},
		{"max-step", "max_steps"},
		{"maxsteps", "max_steps"},
		{"di", ""},
		{"i", ""},
		{"I", ""},
		{"", ""},
		{"budget", ""},
		{strings.Repeat("x", 100_000), ""},
	}
	for _, tt := range tests {
		got, ok := nearest.Name(tt.name, known)
		assert.Equal(t, tt.want, got, tt.name)
		assert.Equal(t, tt.want != "", ok, tt.name)
	}
	for _, order := range [][]string{{"bat", "cat", "car"}, {"car", "cat", "bat"}, {"cat", "bat", "car"}} {
		got, _ := nearest.Name("aat", order)
		assert.Equal(t, "bat", got, "the order of the known names does not matter")
	}
	_, ok := nearest.Name("x", nil)
	assert.False(t, ok)
}
