package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/config"
)

func outside(t testing.TB, rest string, others ...string) (config.Config, error) {
	t.Helper()
	return read(t, "tools:\n  pay:\n    schema: {type: object}\n    "+rest+"\n", others...)
}

func TestSecrets(t *testing.T) {
	t.Setenv("PAY_TOKEN", "tok-1\n")
	c, err := outside(t, `http: {headers: {A: {env: PAY_TOKEN, prefix: "Bearer "}, B: {file: b.txt}, C: {value: x}, D: {}}}`, "b.txt", "tok 2\r\n")
	require.NoError(t, err)
	secrets, err := c.Secrets()
	require.NoError(t, err)
	assert.Equal(t, map[string]map[string]string{"pay": {"A": "tok-1\n", "B": "tok 2"}}, secrets)
	require.Len(t, c.Files(), 2, "another secret in the file is another configuration")
	assert.Equal(t, "b.txt", filepath.Base(c.Files()[1]))

	values, err := c.Values()
	require.NoError(t, err)
	canonical, err := c.Canonical()
	require.NoError(t, err)
	for _, v := range values {
		assert.NotContains(t, string(v.Value), "tok")
	}
	assert.NotContains(t, string(canonical), "tok")
}

func TestSecretsThatAreNotThere(t *testing.T) {
	t.Setenv("EMPTY", "")
	for header, want := range map[string]string{
		"{env: EMPTY}":        "config.yaml:4: tools.pay.http.headers.A.env: the environment variable EMPTY is not set, or empty",
		"{env: NO_SUCH_NAME}": "the environment variable NO_SUCH_NAME is not set",
		"{file: none.txt}":    "config.yaml:4: tools.pay.http.headers.A.file: there is no file ",
		"{file: empty.txt}":   "empty.txt is empty",
		"{file: .}":           "tools.pay.http.headers.A.file: ",
	} {
		c, err := outside(t, "http: {headers: {A: "+header+"}}", "empty.txt", "\n")
		require.NoError(t, err, header)
		_, err = c.Secrets()
		assert.ErrorContains(t, err, want, header)
	}

	c, err := outside(t, "http: {headers: {A: {file: open.txt}}}")
	require.NoError(t, err)
	file := filepath.Join(filepath.Dir(c.Files()[0]), "open.txt")
	require.NoError(t, os.WriteFile(file, []byte("tok"), 0o644))
	require.NoError(t, os.Chmod(file, 0o644))
	c, err = config.Read(c.Files()[0], builtin(t))
	require.NoError(t, err)
	_, err = c.Secrets()
	assert.ErrorContains(t, err, "can be read by others")
}

func TestOutsideRefused(t *testing.T) {
	for rest, want := range map[string]string{
		"http: {metod: GET}":                                               `tools.pay.http.metod: unknown key; did you mean "method"?`,
		"http: {headers: {A: secret}}":                                     "tools.pay.http.headers.A: ",
		"http: {headers: {A: {token: x}}}":                                 "tools.pay.http.headers.A.token: unknown key",
		"http: {success: ['200']}":                                         "tools.pay.http.success[0]: ",
		"{http: {}, limits: {time: 10}}":                                   "tools.pay.limits.time: ",
		"{http: {}, limits: {time: 10x}}":                                  `tools.pay.limits.time: it is "10x"; give a duration with its unit, in whole milliseconds, such as 10s`,
		"{http: {}, limits: {time: 1500us}}":                               `tools.pay.limits.time: it is "1500us"`,
		"{http: {}, limits: {time: 0s}}":                                   "tools.pay.limits.time: no call would have any time",
		"{http: {}, recovery: {idempotency: {header: K, retention: -1h}}}": "tools.pay.recovery.idempotency.retention: it is",
		"{http: {}, recovery: {lookup: {settle: soon}}}":                   "tools.pay.recovery.lookup.settle: it is",
		"{local: record, recovery: {operator: true}}":                      "tools.pay.recovery: only the outcome of a write outside has to be found out",
		"{http: {}, recovery: {operator: yes, operators: true}}":           "tools.pay.recovery",
	} {
		text := "tools: {pay: {schema: {type: object}, " + rest + "}}\n"
		if rest[0] == '{' {
			text = "tools: {pay: {schema: {type: object}, " + rest[1:] + "}\n"
		}
		_, err := read(t, text)
		assert.ErrorContains(t, err, want, rest)
	}
}
