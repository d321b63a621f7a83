package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/policy-dispatch/govern"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/opa"
)

// checkPolicyFlags refuses an empty path, which would be lost on the way and so give the built-in policy, or no layer.
func checkPolicyFlags(cmd *cobra.Command) error {
	for _, name := range []string{"policy", string(opa.Org), string(opa.Site)} {
		flag, _ := cmd.Flags().Lookup(name).Value.(pflag.SliceValue)
		if slices.Contains(flag.GetSlice(), "") {
			return misuse(fmt.Errorf("--%s is given without a path", name)).hint("name a folder, or leave the flag out for the built-in policy without layers")
		}
	}
	return nil
}

// configPath is empty for the built-in configuration, unless something names it and names nothing.
func (a *app) configPath(cmd *cobra.Command) (string, error) {
	if cmd.Flags().Changed("config") {
		if a.configFile == "" {
			return "", misuse(errors.New("--config is given without a file")).hint("name one, or leave the flag out for the built-in configuration")
		}
		return a.configFile, nil
	}
	file, ok := os.LookupEnv(config.EnvConfig)
	if ok && file == "" {
		return "", misuse(fmt.Errorf("%s is set to nothing", config.EnvConfig)).hint("name a file, or unset it")
	}
	return file, nil
}

// parseConfig reads a configuration file, or the built-in configuration if it is empty.
func parseConfig(file string) (config.Config, error) {
	builtin, err := config.Builtin(govern.Files)
	if err != nil || file == "" {
		return builtin, err
	}
	c, err := config.Read(file, builtin)
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return c, fileError(file, err)
	}
	return c, err
}
