//go:build linux || darwin

package doctor

import "golang.org/x/sys/unix"

// free is the space that this user may fill in the file system of a folder.
func free(dir string) (bytes uint64, ok bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
