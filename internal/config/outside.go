package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/wholefile"
)

// HTTP is how a tool outside is reached.
type HTTP struct {
	Method string `json:"method"`
	// URL has JSON Pointers into the arguments in braces.
	URL          string            `json:"url"`
	Headers      map[string]Header `json:"headers"`
	Success      []int             `json:"success"`
	ContentTypes []string          `json:"content_types"`
	// Keep are JSON Pointers into the answer; absent means all of it.
	Keep []string `json:"keep"`
	// Networks are private ones that may be reached.
	Networks []string `json:"networks"`
	Proxy    string   `json:"proxy"`
}

// Header says where the value of a header comes from.
type Header struct {
	// Env is an environment variable and File a path; what they hold is read with the configuration, and shown nowhere.
	Env  string `json:"env"`
	File string `json:"file"`
	// Prefix goes before it.
	Prefix string `json:"prefix"`
	Value  string `json:"value"`
}

// Recovery says how the outcome of a write outside is found out.
type Recovery struct {
	Idempotency *Idempotency `json:"idempotency"`
	Lookup      *Lookup      `json:"lookup"`
	Operator    bool         `json:"operator"`
}

// Idempotency says that the tool knows a repetition by a header.
type Idempotency struct {
	Header string `json:"header"`
	// Retention is how long, as a Go duration.
	Retention string `json:"retention"`
}

// Lookup says that the tool can be asked what became of a call.
type Lookup struct {
	URL       string   `json:"url"`
	Header    string   `json:"header"`
	State     string   `json:"state"`
	Committed []string `json:"committed"`
	Absent    []string `json:"absent"`
	// Settle is how long after a call the word that nothing took place may be premature, as a Go duration; absent means not at all.
	Settle string `json:"settle"`
}

// Duration reads a length of time that check has seen; what is left out is 0.
func Duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// checkOutside refuses what is not said as it has to be; internal/tools says what is wrong with the rest.
func (t Tool) checkOutside(at string, fault faults) {
	duration := func(pointer, text string) {
		d, err := time.ParseDuration(text)
		if text != "" && (err != nil || d%time.Millisecond != 0 || d < 0) {
			fault(at+pointer, "it is %q; give a duration with its unit, in whole milliseconds, such as 10s", text)
		}
	}
	duration("/limits/time", t.Limits.Time)
	if t.Limits.Time != "" && Duration(t.Limits.Time) == 0 && t.HTTP != nil {
		fault(at+"/limits/time", "no call would have any time; leave it out for the default")
	}
	if t.HTTP == nil && t.Recovery != nil {
		fault(at+"/recovery", "only the outcome of a write outside has to be found out; remove it, or say in http how the tool is reached")
	}
	if t.Recovery == nil {
		return
	}
	if i := t.Recovery.Idempotency; i != nil {
		duration("/recovery/idempotency/retention", i.Retention)
	}
	if l := t.Recovery.Lookup; l != nil {
		duration("/recovery/lookup/settle", l.Settle)
	}
}

// secrets are the values of headers that come from elsewhere, by tool and header, and what is wrong with them. They are
// apart from what is shown of a configuration.
type secrets struct {
	values map[string]map[string]string
	wrong  error
}

const mostSecretBytes = 8 << 10

// Secrets are the values of headers that come from the environment and from files, by tool and header, as they were when
// the configuration was read.
func (c Config) Secrets() (map[string]map[string]string, error) {
	return c.secrets.values, c.secrets.wrong
}

// readSecrets reads them. A path starts where at says.
func (c *Config) readSecrets(at func(name string) string) {
	c.secrets.values = map[string]map[string]string{}
	var wrong []error
	for _, tool := range slices.Sorted(maps.Keys(c.Tools)) {
		if c.Tools[tool].HTTP == nil {
			continue
		}
		headers := c.Tools[tool].HTTP.Headers
		c.secrets.values[tool] = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			h := headers[name]
			value, from, err := "", "", error(nil)
			switch {
			case h.Env != "" && h.File == "":
				value, from = os.Getenv(h.Env), "/env"
				if value == "" {
					err = fmt.Errorf("the environment variable %s is not set, or empty; set it to the header's value", h.Env)
				}
			case h.File != "" && h.Env == "":
				file := at(h.File)
				c.origin.files = append(c.origin.files, file)
				value, err = readSecret(file)
				from = "/file"
			default:
				continue
			}
			if err != nil {
				wrong = append(wrong, c.FaultOfTool(tool, "/http/headers/"+ijson.EscapeToken(name)+from, err.Error()))
				continue
			}
			c.secrets.values[tool][name] = value
		}
	}
	c.secrets.wrong = errors.Join(wrong...)
}

// readSecret reads a file without the line break at its end.
func readSecret(file string) (string, error) {
	b, err := wholefile.ReadSecret(file, "the header's value", mostSecretBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no file %s; write the header's value to it", file)
	case err != nil:
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("%s is empty; write the header's value to it", file)
	}
	return value, nil
}
