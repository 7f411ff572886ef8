package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/starling-network/starling/web/failure"
)

// file is the part of *os.File that a log needs.
type file interface {
	io.WriterAt
	Sync() error
	Close() error
}

// line is one of a file: the first has a head, and each other one a request, an answer, or a request that was not
// taken. It is written as the CRC-32C of its JSON in eight hexadecimal digits, a space, the JSON, and a line feed.
type line struct {
	Head   *Head  `json:"head,omitempty"`
	Ask    *Entry `json:"ask,omitempty"`
	Answer *Entry `json:"answer,omitempty"`
	Drop   string `json:"drop,omitempty"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sumOf(text []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(text, castagnoli)) }

func (x line) text() ([]byte, error) {
	b, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s\n", sumOf(b), b), nil
}

// parse reads a line without its line feed.
func parse(text []byte) (x line, err error) {
	sum, rest, _ := bytes.Cut(text, []byte(" "))
	if string(sum) != sumOf(rest) {
		return x, errors.New("its checksum is another one")
	}
	if err := json.Unmarshal(rest, &x); err != nil {
		return x, err
	}
	has := 0
	for _, is := range []bool{x.Head != nil, x.Ask != nil, x.Answer != nil, x.Drop != ""} {
		if is {
			has++
		}
	}
	if has != 1 {
		return x, errors.New("it is neither a head, a request, an answer nor a request that was not taken")
	}
	return x, nil
}

// read reads the lines of a file. A line without a line feed was not written to its end.
func (l *Log) read(text []byte) error {
	all := bytes.Split(text, []byte("\n"))
	for n, part := range all[:len(all)-1] {
		x, err := parse(part)
		if err == nil && (n == 0) != (x.Head != nil) {
			err = errors.New("the first line alone says of which model it is")
		}
		if err == nil && n == 0 && x.Head.Model+suffix != filepath.Base(l.path) {
			err = fmt.Errorf("it is of the model %.80q", x.Head.Model)
		}
		if err != nil {
			return l.damaged(n+1, err)
		}
		switch {
		case x.Head != nil:
			l.Head = *x.Head
		case x.Ask != nil:
			l.all = append(l.all, x.Ask)
		case x.Answer != nil:
			l.answer(x.Answer)
		default:
			l.drop(x.Drop)
		}
	}
	if len(all) == 1 {
		return l.damaged(1, errors.New("it is not whole"))
	}
	return nil
}

func (l *Log) damaged(n int, err error) error {
	return failure.New(http.StatusInternalServerError, "LOG_DAMAGED",
		fmt.Sprintf("line %d of %s, the requests to a model, is damaged: %v", n, l.path, err),
		"restore the file from a backup, or move it away and start the server again: its model is then gone, and its run "+
			"is ended")
}

// storing is an error of writing for clients.
func storing(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errors.Join(&failure.Error{Status: http.StatusInsufficientStorage, Code: "DISK_FULL",
			Detail: "the disk of the server has no room for the request, which is not taken",
			Fix:    "make room on the disk of the server, then send the request again", Retry: time.Minute}, err)
	}
	return err
}

// rewrite replaces the file by one with the requests that are kept. If that fails, the file is as before, and the next
// line waits until it succeeds.
func (l *Log) rewrite() error {
	if l.closed {
		return nil
	}
	var b bytes.Buffer
	lines := []line{{Head: &l.Head}}
	for _, e := range l.all {
		lines = append(lines, line{Ask: e})
	}
	for _, x := range lines {
		text, err := x.text()
		if err != nil {
			return err
		}
		b.Write(text)
	}
	// Some systems replace no file that is open.
	if err := errors.Join(l.leave(), os.MkdirAll(filepath.Dir(l.path), 0o755)); err != nil {
		return err
	}
	part := l.path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(part, l.path)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(part))
	}
	l.f, l.size, l.freed = f, b.Len(), 0
	return nil
}

// leave closes the file.
func (l *Log) leave() error {
	if l.f == nil {
		return nil
	}
	err := l.f.Close()
	l.f = nil
	return err
}

// write adds a line, whose effect on the requests that are kept is there already. After an error the file may have a
// part of it at its end, and is written again before the next line.
func (l *Log) write(x line) error {
	if l.f == nil {
		return l.rewrite()
	}
	text, err := x.text()
	if err != nil {
		return err
	}
	_, err = l.f.WriteAt(text, int64(l.size))
	if err = errors.Join(err, l.f.Sync()); err != nil {
		return errors.Join(err, l.leave())
	}
	l.size += len(text)
	return nil
}
