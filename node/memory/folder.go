package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"unsafe"
)

// Folder is a folder whose large files are mapped when they are read: their bytes are pages of the file, which
// processes share and the system may take back at any time. They are read-only. A file must not become shorter while
// it is mapped.
//
// A Folder owns its mappings: nothing that lies in them may be used after Close. It implements fs.ReadFileFS, fs.StatFS
// and folder.Resting, and may be used concurrently.
type Folder struct {
	fs.FS
	dir string

	mu    sync.Mutex
	files map[string][]byte // mapped, by name
}

// leastMapped is the size from which on a file is mapped.
const leastMapped = 1 << 20

// OpenFolder returns the folder dir. Nothing is read yet.
func OpenFolder(dir string) *Folder {
	return &Folder{FS: os.DirFS(dir), dir: dir, files: map[string][]byte{}}
}

// Stat implements fs.StatFS.
func (d *Folder) Stat(name string) (fs.FileInfo, error) { return fs.Stat(d.FS, name) }

// ReadFile implements fs.ReadFileFS. A file that was read before has the same bytes in the same place.
func (d *Folder) ReadFile(name string) ([]byte, error) {
	info, err := fs.Stat(d.FS, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() < leastMapped || int64(int(info.Size())) != info.Size() {
		return fs.ReadFile(d.FS, name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if data, ok := d.files[name]; ok {
		return data, nil
	}
	f, err := os.Open(filepath.Join(d.dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := mapFile(f, int(info.Size()))
	if errors.Is(err, errors.ErrUnsupported) {
		return fs.ReadFile(d.FS, name)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: name, Err: err}
	}
	d.files[name] = data
	return data, nil
}

// Rest lets the system take back the pages of part of a mapped file, which come again when they are read. Of other
// bytes nothing happens.
func (d *Folder) Rest(part []byte) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, data := range d.files {
		if restIn(data, part) {
			return
		}
	}
}

// restIn lets the system take back the pages of a part of mapped bytes; false if it is not a part of them.
func restIn(data, part []byte) bool {
	from, ok := within(data, part)
	if ok {
		page := os.Getpagesize()
		lo := from / page * page
		rest(data[lo:min(len(data), (from+len(part)+page-1)/page*page)])
	}
	return ok
}

// within returns where a part of bytes begins in them; false if it is not a part of them.
func within(data, part []byte) (from int, ok bool) {
	if len(part) == 0 || len(data) == 0 {
		return 0, false
	}
	first, at := uintptr(unsafe.Pointer(&data[0])), uintptr(unsafe.Pointer(&part[0]))
	if at < first || at-first > uintptr(len(data)-len(part)) || len(part) > len(data) {
		return 0, false
	}
	return int(at - first), true
}

// Close gives all mappings back. A nil Folder has none.
func (d *Folder) Close() error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for name, data := range d.files {
		errs = append(errs, unmap(data))
		delete(d.files, name)
	}
	return errors.Join(errs...)
}
