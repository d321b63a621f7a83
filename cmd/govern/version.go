package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Say which govern this is", Args: args(), Example: "  govern version --format json"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = func(*cobra.Command, []string) error {
		v := version()
		if f.json() {
			return writeJSON(a.stdout, v)
		}
		fmt.Fprintf(a.stdout, "govern %s (OPA %s, %s)\n", v.Version, v.OPA, v.Go)
		return nil
	}
	return cmd
}

// build says which govern this is.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitzero"`
	OPA     string `json:"opa"`
	Go      string `json:"go"`
}

func version() build {
	v := build{Version: "(devel)", Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
		for _, d := range info.Deps {
			if d.Path == "github.com/open-policy-agent/opa" {
				v.OPA = d.Version
			}
		}
	}
	return v
}
