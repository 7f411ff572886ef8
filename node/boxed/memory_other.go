//go:build !linux

package boxed

import "os"

// shared makes a file that a child can inherit, empty yet.
func shared(dir string) (*os.File, error) { return os.CreateTemp(dir, "memory-") }

// fix gives the file its size.
func fix(f *os.File, size int64) error { return f.Truncate(size) }
