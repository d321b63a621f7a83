package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"github.com/policy-dispatch/govern/internal/nearest"
)

// settings are the scalars that flags and environment can set above the file: one table for all three.
// Everything else in the file is permission, and has one place.
var settings = []struct {
	key string
	// field is a *string, an **int, or a *[]string for what takes several values: a repeated flag, or a variable with
	// the separator of PATH.
	field func(*Config) any
}{
	{"state", func(c *Config) any { return &c.State }},
	{"policy", func(c *Config) any { return &c.Policy }},
	{"org", func(c *Config) any { return &c.Org }},
	{"site", func(c *Config) any { return &c.Site }},
	{"task", func(c *Config) any { return &c.Task }},
	{"actor", func(c *Config) any { return &c.Actor }},
	{"limits.proposal_bytes", func(c *Config) any { return &c.Limits.ProposalBytes }},
	{"limits.decision_time", func(c *Config) any { return &c.Limits.DecisionTime }},
	{"log.signing_key", func(c *Config) any { return &c.Log.SigningKey }},
	{"log.every", func(c *Config) any { return &c.Log.Every }},
	{"log.checkpoint_token_file", func(c *Config) any { return &c.Log.TokenFile }},
}

// sections are what only the file can say: permissions, what they are about, and lists of what may hold the separator
// of PATH.
var sections = []string{"profiles", "tasks", "tools", "resources", "documents", "reviewers", "log.checkpoints"}

// EnvConfig names the variable that stands for --config.
const EnvConfig = "GOVERN_CONFIG"

// CheckEnv refuses a GOVERN_… variable that nothing reads: silence would hide that it has no effect.
func CheckEnv(environ []string) error {
	known := []string{EnvConfig}
	for _, s := range settings {
		known = append(known, envName(s.key))
	}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, "GOVERN_") || slices.Contains(known, name) {
			continue
		}
		for _, section := range sections {
			if name == envName(section) || strings.HasPrefix(name, envName(section)+"_") {
				return fmt.Errorf("the environment variable %s is unknown; %s are set in the configuration file alone", name, section)
			}
		}
		if near, ok := nearest.Name(name, known); ok {
			return fmt.Errorf("the environment variable %s is unknown; did you mean %s?", name, near)
		}
		return fmt.Errorf("the environment variable %s is unknown; there are %s", name, strings.Join(known, ", "))
	}
	return nil
}

// Overlay lays flags and environment over the file's scalars. A flag counts if it was given, a variable if it is
// set, be it to nothing.
func (c Config) Overlay(flags *pflag.FlagSet) (Config, error) {
	overlaid := map[string]string{}
	maps.Copy(overlaid, c.origin.overlaid)
	c.origin.overlaid = overlaid
	v := viper.New()
	v.AllowEmptyEnv(true)
	for _, s := range settings {
		if err := v.BindEnv(s.key, envName(s.key)); err != nil {
			return c, err
		}
		from := envName(s.key)
		if f := flags.Lookup(s.key); f != nil && f.Changed {
			if err := v.BindPFlag(s.key, f); err != nil {
				return c, err
			}
			from = "--" + s.key
		}
		if !v.IsSet(s.key) {
			continue
		}
		value := v.Get(s.key)
		if value == "" {
			return c, fmt.Errorf("%s is set to nothing; give a value, or unset %s", s.key, envName(s.key))
		}
		switch field := s.field(&c).(type) {
		case *string:
			*field = v.GetString(s.key)
		case **int:
			n, err := strconv.Atoi(v.GetString(s.key))
			if err != nil {
				return c, fmt.Errorf("%s is %q, which is no whole number; give digits alone, or unset it", from, v.GetString(s.key))
			}
			*field = &n
		case *[]string:
			if env, ok := value.(string); ok {
				*field = filepath.SplitList(env)
			} else {
				*field = v.GetStringSlice(s.key)
			}
		}
		c.origin.overlaid[s.key] = from
	}
	return c, c.check()
}

func envName(key string) string {
	return "GOVERN_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}
