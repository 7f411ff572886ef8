//go:build linux || darwin

package disk

import "golang.org/x/sys/unix"

// Free is the space, in bytes, that this user may fill in the file system of a folder; not ok where it is not known.
func Free(dir string) (bytes int64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
