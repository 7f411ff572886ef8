// Package inputs tells go test which files of the repository the processes of a test read. go test keeps the result of
// a test with the files that the test itself opened, and plays the test again when one of them has changed; files that
// its processes open are unknown to it.
package inputs

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Of makes files, and all files below folders, inputs of a test.
func Of(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		err := filepath.WalkDir(path, func(at string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(at)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
