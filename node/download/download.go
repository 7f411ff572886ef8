// Package download gets files over HTTP: within a limit, checked against a digest where one is known, and resumed
// where an earlier download was cut off. A file appears under its name when it is complete.
package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// File says what to get, and where to.
type File struct {
	URL    string
	Path   string      // its folder is made
	SHA256 string      // in hexadecimal; "": not known
	Max    int64       // bytes
	Header http.Header // of the request
	Client *http.Client
	Retry  time.Duration           // wait before the first repetition, doubled after each; 0: a second
	Say    func(done, whole int64) // reports progress; whole is 0 if the server gives no length; may be nil
}

// Errors of Get, in addition to those of the disk and of the connection.
var (
	ErrTooLarge = errors.New("the file is larger than the limit")
	ErrDigest   = errors.New("the file has another digest than it must have")
)

// StatusError is an answer of the server that says no.
type StatusError struct{ Status int }

func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.Status, http.StatusText(e.Status))
}

const (
	tries  = 5
	suffix = ".part"
)

// Get downloads a file and returns its digest in hexadecimal. A connection that is cut off is made again, and so is the
// download in a later call: the part that is there stays, unless the file of the server has changed.
func Get(ctx context.Context, f File) (sum string, err error) {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return "", err
	}
	wait := f.Retry
	if wait == 0 {
		wait = time.Second
	}
	for n := 1; ; n++ {
		sum, err = f.get(ctx)
		no := (*StatusError)(nil)
		final := errors.Is(err, ErrTooLarge) || errors.Is(err, ErrDigest) ||
			errors.As(err, &no) && no.Status < 500 && no.Status != http.StatusTooManyRequests
		if err == nil || final || n == tries || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			wait *= 2
		}
	}
	if err != nil {
		return "", fmt.Errorf("download %s: %w", f.URL, errors.Join(err, ctx.Err()))
	}
	return sum, nil
}

// part is what there is of a file, with the tag that the server gave its content.
type part struct {
	file *os.File
	tag  string
	size int64
	sum  hash.Hash
}

func (f File) open() (*part, error) {
	file, err := os.OpenFile(f.Path+suffix, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	p := &part{file: file, sum: sha256.New()}
	if tag, err := os.ReadFile(f.Path + suffix + ".tag"); err == nil {
		p.tag = string(tag)
	}
	if p.tag == "" && f.SHA256 == "" { // without either, a changed file would not be noticed
		return p, p.restart()
	}
	p.size, err = io.Copy(p.sum, file)
	return p, err
}

func (p *part) restart() error {
	p.size = 0
	p.sum.Reset()
	_, err := p.file.Seek(0, io.SeekStart)
	return errors.Join(err, p.file.Truncate(0))
}

func (f File) get(ctx context.Context) (string, error) {
	p, err := f.open()
	if err != nil {
		return "", err
	}
	defer p.file.Close()
	if f.SHA256 == "" || hex.EncodeToString(p.sum.Sum(nil)) != f.SHA256 { // cut off before it got its name
		if err := f.rest(ctx, p); err != nil {
			return "", err
		}
	}
	sum := hex.EncodeToString(p.sum.Sum(nil))
	if f.SHA256 != "" && sum != f.SHA256 {
		return "", errors.Join(fmt.Errorf("%w: it is %s, and %s is wanted", ErrDigest, sum, f.SHA256), p.restart())
	}
	if err := errors.Join(p.file.Sync(), p.file.Close(), os.Rename(f.Path+suffix, f.Path)); err != nil {
		return "", err
	}
	if err := os.Remove(f.Path + suffix + ".tag"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return sum, nil
}

// rest asks for what is missing, and adds it.
func (f File) rest(ctx context.Context, p *part) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	for k, v := range f.Header {
		r.Header[k] = v
	}
	r.Header.Set("Accept-Encoding", "identity") // the digest is of the file
	if p.size > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", p.size))
		if p.tag != "" {
			r.Header.Set("If-Range", p.tag)
		}
	}
	client := f.Client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		if err := p.restart(); err != nil {
			return err
		}
	case http.StatusPartialContent:
	case http.StatusRequestedRangeNotSatisfiable: // the part is no part of it
		return errors.Join(errors.New("the server has another file by now"), p.restart())
	default:
		return &StatusError{answer.StatusCode}
	}
	if tag := answer.Header.Get("ETag"); tag != p.tag {
		if err := os.WriteFile(f.Path+suffix+".tag", []byte(tag), 0o644); err != nil {
			return err
		}
	}
	return f.copy(p, answer)
}

// copy appends the body of an answer.
func (f File) copy(p *part, answer *http.Response) error {
	whole := int64(0)
	if answer.ContentLength >= 0 {
		whole = p.size + answer.ContentLength
	}
	if f.Max > 0 && whole > f.Max {
		return fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, whole, f.Max)
	}
	buffer := make([]byte, 1<<20)
	for {
		n, err := answer.Body.Read(buffer)
		if f.Max > 0 && p.size+int64(n) > f.Max {
			return errors.Join(fmt.Errorf("%w: more than %d bytes", ErrTooLarge, f.Max), p.restart())
		}
		if _, failed := p.file.Write(buffer[:n]); failed != nil {
			return failed
		}
		_, _ = p.sum.Write(buffer[:n]) // it never fails
		p.size += int64(n)
		if f.Say != nil {
			f.Say(p.size, whole)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
