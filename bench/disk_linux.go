package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// filesystem names the kind of file system that a folder is on.
func filesystem(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", err
	}
	switch s.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", nil
	case unix.XFS_SUPER_MAGIC:
		return "xfs", nil
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", nil
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlayfs", nil
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return "tmpfs", nil
	}
	return fmt.Sprintf("file system %#x", s.Type), nil
}

// syncData waits until the content of a file is on the disk.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
