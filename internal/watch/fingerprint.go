package watch

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// fingerprint stands for what some files are: as long as it is the same, nothing was written to them. It holds for each
// path what is there, and that nothing is there is a state too.
type fingerprint map[string]string

// take looks at files, and says when the last of them was written. A link is what it leads to.
func take(files []string) (f fingerprint, newest time.Time) {
	f = fingerprint{}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			f[file] = err.Error()
			continue
		}
		id, touched := identity(info)
		f[file] = fmt.Sprint(info.Size(), " ", touched.UnixNano(), " ", info.Mode(), " ", id)
		if touched.After(newest) {
			newest = touched
		}
	}
	return f, newest
}

func (f fingerprint) equal(other fingerprint) bool {
	return f != nil && other != nil && maps.Equal(f, other)
}

// differs names the first path at which two fingerprints differ.
func (f fingerprint) differs(other fingerprint) string {
	for _, path := range slices.Sorted(maps.Keys(other)) {
		if f[path] != other[path] {
			return path
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if _, ok := other[path]; !ok {
			return path
		}
	}
	return ""
}
