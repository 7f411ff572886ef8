// Package tuning keeps files of examples, and writes the job files that tune a model with them, for those who ask by
// OpenAI's interface for it: source.Files and source.Tuner.
//
// A job of it is like any other: all that was asked for is in its file. It trains nothing and knows no HTTP.
package tuning

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/openai"
)

// ExampleStore keeps files of examples in a folder of their own below a folder of data. Its name begins with a point:
// no pattern of a job file finds what is in it.
type ExampleStore struct {
	data string
	mu   sync.Mutex // held while the files change
}

// The folder of a shelf has a folder for each file, by its identifier.
const (
	dirShelf     = ".examples"
	fileExamples = "examples.jsonl"
	fileAbout    = "file.json"
	staging      = "upload-*" // of a file that is received
)

// Limits of a shelf.
const (
	maxFiles = 1000
	maxBytes = 10 << 30 // of all files
	maxName  = 200      // bytes of the name of a file
)

var idForm = regexp.MustCompile(`^file-[0-9a-f]{24}$`)

// NewExampleStore is the shelf below a folder of data. It makes no folder before there is something to keep, and
// removes what a server left that ended while it received a file.
func NewExampleStore(data string) *ExampleStore {
	s := &ExampleStore{data: data}
	left, _ := filepath.Glob(s.path(staging)) // the pattern is one
	for _, dir := range left {
		_ = os.RemoveAll(dir) // a leftover folder does no harm
	}
	return s
}

func (s *ExampleStore) path(elements ...string) string {
	return filepath.Join(append([]string{s.data, dirShelf}, elements...)...)
}

// List returns all files, the latest first.
func (s *ExampleStore) List() ([]api.FileObject, error) {
	entries, err := os.ReadDir(s.path())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []api.FileObject
	for _, e := range entries {
		if f, err := s.file(e.Name()); err == nil {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b api.FileObject) int {
		if a.CreatedAt != b.CreatedAt {
			return int(b.CreatedAt - a.CreatedAt)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return files, nil
}

// file reads what is known of a file, or fails with failure.ErrNotFound.
func (s *ExampleStore) file(id string) (f api.FileObject, err error) {
	if !idForm.MatchString(id) {
		return f, failure.ErrNotFound
	}
	text, err := os.ReadFile(s.path(id, fileAbout))
	if errors.Is(err, fs.ErrNotExist) {
		return f, failure.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return f, err
}

// Keep adds a file. Its identifier is a digest of its bytes: the same file twice is one, under its first name. The
// error is that of r, a *failure.Error, or wraps openai.ErrExamples.
func (s *ExampleStore) Keep(name string, r io.Reader) (f api.FileObject, err error) {
	if err := os.MkdirAll(s.path(), 0o700); err != nil {
		return f, err
	}
	staged, err := os.MkdirTemp(s.path(), staging)
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(staged)
	f = api.FileObject{Object: "file", Filename: strings.ToValidUTF8(name[:min(len(name), maxName)], ""),
		Purpose: "fine-tune", Status: "processed"}
	digest := sha256.New()
	examples, err := os.OpenFile(filepath.Join(staged, fileExamples), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return f, err
	}
	count := &counter{}
	_, err = openai.Examples(io.TeeReader(r, io.MultiWriter(examples, digest, count)),
		func(openai.Example) error { return nil })
	if err = errors.Join(err, examples.Sync(), examples.Close()); err != nil {
		return f, err
	}
	f.ID, f.Bytes, f.CreatedAt = "file-"+hex.EncodeToString(digest.Sum(nil)[:12]), count.n, time.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	if had, err := s.file(f.ID); err == nil {
		return had, nil
	}
	if err := s.room(f.Bytes); err != nil {
		return f, err
	}
	about, err := json.Marshal(f)
	if err != nil {
		return f, err
	}
	if err := os.WriteFile(filepath.Join(staged, fileAbout), about, 0o600); err != nil {
		return f, err
	}
	return f, os.Rename(staged, s.path(f.ID))
}

// counter counts what is written to it.
type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// room fails if the shelf is full. The caller holds the lock.
func (s *ExampleStore) room(more int64) error {
	files, err := s.List()
	if err != nil {
		return err
	}
	for _, f := range files {
		more += f.Bytes
	}
	if len(files) >= maxFiles || more > maxBytes {
		return &failure.Error{Status: 507, Code: "FILES_FULL",
			Detail: fmt.Sprintf("the server keeps at most %d files of %d GiB together", maxFiles, maxBytes>>30),
			Fix:    "delete one"}
	}
	return nil
}

// Open opens a file, or fails with failure.ErrNotFound.
func (s *ExampleStore) Open(id string) (io.ReadSeekCloser, api.FileObject, error) {
	f, err := s.file(id)
	if err != nil {
		return nil, f, err
	}
	r, err := os.Open(s.path(id, fileExamples))
	return r, f, err
}

// Remove removes a file, and what was made of it for jobs, or fails with failure.ErrNotFound.
func (s *ExampleStore) Remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.file(id); err != nil {
		return err
	}
	// The description goes first: without it there is no file.
	if err := os.Remove(s.path(id, fileAbout)); err != nil {
		return err
	}
	return os.RemoveAll(s.path(id))
}
