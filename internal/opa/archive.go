package opa

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// archiveEnding is how the name of a bundle in one file ends.
const archiveEnding = ".tar.gz"

// Limits of what an archive may unpack to. It is trusted, so they only keep a wrong path from filling the memory.
const (
	maxArchive      = 256 << 20
	maxArchiveFiles = 10_000
)

func (s *Source) addArchiveFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return unreadable(path, err)
	}
	defer f.Close()
	return s.addArchive(path, f)
}

// addArchive adds the files of a bundle in one file, as opa build and govern policy export write it. They are what the
// folder would have been: the same names, the same rules, the same version.
func (s *Source) addArchive(shown string, r io.Reader) error {
	files, err := unpack(r)
	if err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	if files, err = flat(files); err != nil {
		return fmt.Errorf("%s/%w", shown, err)
	}
	for _, f := range files {
		if err := s.addArchived(shown+"/"+f.name, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) addArchived(shown string, f file) error {
	if part, err := isPart(shown, f.name); !part || err != nil {
		return err
	}
	return s.add(shown, f.name, []byte(f.text))
}

// flat gives the files their names within the bundle: opa build puts Rego under the path that it was read from. The
// result is in the order of the names.
func flat(files []file) ([]file, error) {
	folder, seen := "", map[string]bool{}
	for i, f := range files {
		if path.Ext(f.name) == ".rego" {
			if folder == "" {
				folder = path.Dir(f.name)
			}
			if path.Dir(f.name) != folder {
				return nil, fmt.Errorf("%s: a bundle is one flat folder, and other Rego of the archive lies in %s; put all of it into one", f.name, path.Join("/", folder))
			}
			files[i].name = path.Base(f.name)
		}
		if seen[files[i].name] {
			return nil, fmt.Errorf("%s: the archive holds it twice; build it again", files[i].name)
		}
		seen[files[i].name] = true
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// unpack reads a gzipped tar whole, with its checksum, and refuses what could be meant for another reader.
func unpack(r io.Reader) ([]file, error) {
	buffered := bufio.NewReader(r)
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, archiveError(err)
	}
	unzipped.Multistream(false)
	limited := &io.LimitedReader{R: unzipped, N: maxArchive}
	files, err := untar(tar.NewReader(limited))
	if err == nil {
		_, err = io.Copy(zeros{}, limited)
	}
	if limited.N == 0 {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, archiveError(err)
	}
	if _, err := buffered.ReadByte(); err != io.EOF {
		return nil, errMore
	}
	return files, nil
}

var errMore = fmt.Errorf("something follows the end of the archive, which some readers would take in; make one of the whole with opa build -b FOLDER -o FILE%s", archiveEnding)

// zeros takes what may follow the files of a tar.
type zeros struct{}

func (zeros) Write(p []byte) (int, error) {
	if len(bytes.TrimLeft(p, "\x00")) > 0 {
		return 0, errMore
	}
	return len(p), nil
}

var errTooLarge = fmt.Errorf("the archive unpacks to more than %d MiB; give a bundle of Rego and its data alone", maxArchive>>20)

func untar(t *tar.Reader) ([]file, error) {
	var files []file
	size := int64(0)
	for {
		header, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		switch header.Typeflag {
		case tar.TypeDir, tar.TypeXGlobalHeader:
			continue
		case tar.TypeReg:
		default:
			return nil, fmt.Errorf("%s is a link or a device; put the file itself into the archive", header.Name)
		}
		if slices.Contains(strings.Split(header.Name, "/"), "..") || strings.ContainsAny(header.Name, "\\\x00") {
			return nil, fmt.Errorf("%q leads out of the archive; build it from the folder alone: opa build -b FOLDER -o FILE%s", header.Name, archiveEnding)
		}
		if size += header.Size; size > maxArchive {
			return nil, errTooLarge
		}
		if len(files) == maxArchiveFiles {
			return nil, fmt.Errorf("the archive holds more than %d files; give a bundle of Rego and its data alone", maxArchiveFiles)
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if hidden(path.Dir(name)) {
			if path.Ext(name) == ".rego" {
				return nil, fmt.Errorf("%s is Rego in a hidden folder, which would be passed over; build the archive from a folder of another name, or without it", name)
			}
			continue
		}
		files = append(files, file{name: name, text: string(content)})
	}
}

// hidden says that a folder is one of those that the reader of folders does not enter.
func hidden(folder string) bool {
	return slices.ContainsFunc(strings.Split(folder, "/"), func(s string) bool { return s != "." && strings.HasPrefix(s, ".") })
}

func archiveError(err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("it is no gzip archive; make it with opa build -b FOLDER -o FILE%s", archiveEnding)
	case errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("it holds no tar archive; make it with opa build -b FOLDER -o FILE%s", archiveEnding)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the archive ends early; fetch it again")
	case errors.Is(err, gzip.ErrChecksum), corrupt(err):
		return fmt.Errorf("the archive is damaged (%w); fetch it again", err)
	}
	return err
}

func corrupt(err error) bool {
	_, is := errors.AsType[flate.CorruptInputError](err)
	return is
}
