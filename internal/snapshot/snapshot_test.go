package snapshot_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/snapshot"
)

// The tools outside that the documentation shows are ones that there can be.
func TestToolsOutsideAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```yaml\n(tools:\n.*?)```").FindSubmatch(page)
	require.NotNil(t, example)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, example[1], 0o600))
	builtin, err := config.Builtin(govern.Files)
	require.NoError(t, err)

	c, err := config.Read(file, builtin)
	require.NoError(t, err)
	_, err = c.Secrets()
	assert.ErrorContains(t, err, "the environment variable PAY_TOKEN is not set")
	_, err = snapshot.New(t.Context(), c)
	assert.NoError(t, err, "who calls no tool needs none")

	t.Setenv("PAY_TOKEN", "tok-0123456789")
	c, err = config.Read(file, builtin)
	require.NoError(t, err)
	made, err := snapshot.New(t.Context(), c)
	require.NoError(t, err)
	pay := made.Tools["create_payment"].Definition()
	assert.Equal(t, dispatch.Recovery{Retention: 24 * 3600_000}, pay.Recovery)
	assert.Equal(t, dispatch.ToolLimits{Time: 10_000, OutputBytes: 65536}, pay.Limits)
	assert.True(t, pay.IsOutside())
	assert.Equal(t, dispatch.Read, made.Tools["find_order"].Definition().Effect)
}
