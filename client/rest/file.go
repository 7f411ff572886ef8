package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/api"
)

// Examples are the files of examples that a server keeps.
type Examples struct{ c *Client }

// List returns them, the latest first.
func (e Examples) List(ctx context.Context) ([]api.FileObject, error) {
	f, err := get[api.FileObjects](ctx, e.c, "/v1/files?limit=10000")
	if f.Data == nil {
		f.Data = []api.FileObject{}
	}
	return f.Data, err
}

// Keep has the server keep a file.
func (e Examples) Keep(ctx context.Context, name string, from io.Reader) (kept api.FileObject, err error) {
	read, write := io.Pipe()
	form := multipart.NewWriter(write)
	go func() {
		part, err := form.CreateFormFile("file", name)
		if err == nil {
			_, err = io.Copy(part, from)
		}
		err = errors.Join(err, form.WriteField("purpose", "fine-tune"), form.Close())
		_ = write.CloseWithError(err) // never fails
	}()
	defer read.Close()
	answer, err := e.c.do(ctx, http.MethodPost, "/v1/files", read,
		http.Header{"Content-Type": {form.FormDataContentType()}})
	if err != nil {
		return kept, err
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxProblem)).Decode(&kept)
	return kept, errors.Join(err, answer.Body.Close())
}

// Remove removes a file.
func (e Examples) Remove(ctx context.Context, id string) error {
	_, err := ask[api.FileDeleted](ctx, e.c, http.MethodDelete, "/v1/files/"+url.PathEscape(id), nil, nil)
	return err
}

// SaveFile copies a file of a run to a path, whose folder it makes. A file of the same size is left as it is; any other
// gives fs.ErrExist. A copy that breaks off leaves nothing.
func (c *Client) SaveFile(ctx context.Context, job string, f api.File, path string) error {
	if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
		return &Error{Code: "FILE_NAME", What: fmt.Sprintf("the server names a file %q, which leads out of the folder",
			f.Name), Fix: "do not use this server"}
	}
	if info, err := os.Stat(path); err == nil {
		if info.Size() == f.Bytes && info.Mode().IsRegular() {
			return nil
		}
		return fmt.Errorf("%s: %w, with %d bytes instead of %d", path, fs.ErrExist, info.Size(), f.Bytes)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	written := &counted{to: part}
	err = c.Download(ctx, job, f.Name, written)
	if err = errors.Join(err, part.Chmod(0o644), part.Close()); err != nil {
		return err
	}
	if f.Kind != "record" && written.n != f.Bytes { // a record may have grown
		return &Error{Code: "FILE_CUT", What: fmt.Sprintf("%s came with %d bytes of %d", f.Name, written.n, f.Bytes),
			Fix: "try again", Temporary: true}
	}
	return os.Rename(part.Name(), path)
}

// counted counts what is written.
type counted struct {
	to io.Writer
	n  int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n += int64(n)
	return n, err
}
