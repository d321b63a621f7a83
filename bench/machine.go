package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// describe says what was measured on, without saying whose it is.
func describe(ctx context.Context, dir string) (string, error) {
	kind, err := filesystem(dir)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %d cores, %s, %s, %s, govern %s", processor(), runtime.NumCPU(), kernel(), kind, runtime.Version(), commit(ctx)), nil
}

// valueIn finds the first line "name: value" of a file of /proc.
func valueIn(file, name string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func processor() string {
	if model := valueIn("/proc/cpuinfo", "model name"); model != "" {
		return model
	}
	return runtime.GOARCH
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(release))
}

// commit names the state of the source. What a run itself writes is no change of it.
func commit(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "of an unknown commit"
	}
	name := strings.TrimSpace(string(head))
	if exec.CommandContext(ctx, "git", "diff", "--quiet", "HEAD", "--", ":/", ":/!bench/results.json", ":/!docs/performance.md").Run() != nil {
		name += " with changes"
	}
	return name
}
