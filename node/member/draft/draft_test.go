package draft

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A draft is a file that replaces the previous one as a whole, and survives the process. It is written when its
// interval is over, and a disk that refuses it does not stop the work.
func TestDrafts(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	text := func(d *Store) (found string) {
		d.Load(func(r io.Reader) error {
			b, err := io.ReadAll(r)
			found = string(b)
			return err
		})
		return found
	}
	save := func(d *Store, s string) {
		d.Save(false, func(w io.Writer) error { _, err := io.WriteString(w, s); return err })
	}
	d := NewStore(dir, "a/../job", log)
	if save(d, "early"); text(d) != "" {
		t.Error("a draft is written before it is time")
	}
	d.next = time.Time{}
	if save(d, "first"); text(d) != "first" {
		t.Errorf("there is %q", text(d))
	}
	if save(d, "too soon"); text(d) != "first" {
		t.Errorf("there is %q", text(d))
	}
	d.Save(true, func(w io.Writer) error { _, err := io.WriteString(w, "last"); return err })
	if text(d) != "last" {
		t.Errorf("of a unit that is set aside there is %q", text(d))
	}
	d.next = time.Time{}
	save(d, "first")
	d.next = time.Time{}
	d.Save(false, func(w io.Writer) error { _, _ = io.WriteString(w, "half"); return errors.New("full") })
	if again := NewStore(dir, "a/../job", log); text(again) != "first" ||
		text(NewStore(dir, "other", log)) != "" {
		t.Errorf("another process finds %q", text(again))
	}
	d.Drop()
	if files, err := os.ReadDir(filepath.Join(dir, folder)); err != nil || len(files) > 0 || text(d) != "" {
		t.Errorf("%v, %d files are left", err, len(files))
	}
	if err := os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d = NewStore(filepath.Join(dir, "taken"), "job", log)
	d.next = time.Time{}
	save(d, "nowhere")
	if text(d) != "" {
		t.Error("there is something")
	}
}

// A draft takes room of the disk while it is there, and is not written without.
func TestDraftsTakeRoom(t *testing.T) {
	d, left := NewStore(t.TempDir(), "job", slog.New(slog.DiscardHandler)), int64(20)
	d.Bytes = 10
	d.Reserve = func(bytes int64) (func(), error) {
		if bytes > left {
			return nil, errors.New("no room")
		}
		left -= bytes
		return func() { left += bytes }, nil
	}
	save := func(text string) (there bool) {
		d.Save(true, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		d.Load(func(r io.Reader) error {
			b, err := io.ReadAll(r)
			there = string(b) == text
			return err
		})
		return there
	}
	if !save("first") || left != 10 || !save("second") || left != 10 {
		t.Errorf("%d bytes are left beside a draft", left)
	}
	left = 9
	if save("third") || left != 9 {
		t.Error("a draft is written without room")
	}
	if d.Drop(); left != 19 {
		t.Errorf("%d bytes are left without a draft", left)
	}
	left = 10
	d.Save(true, func(io.Writer) error { return errors.New("full") })
	if left != 10 {
		t.Errorf("%d bytes are left after a draft that could not be written", left)
	}
}
