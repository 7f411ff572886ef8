package releases_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/releasetest"
	"github.com/starling-network/starling/node/releases"
)

// program is a file that stands for a program.
func program(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "starling")
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func source(t *testing.T, r *releasetest.Repository) releases.Source {
	t.Helper()
	return releases.Source{URL: r.URL(), Root: r.Root(), Dir: t.TempDir()}
}

// Releases are listed latest first, and fetched byte by byte; one that lacks signatures is not published.
func TestReleasesAreFetched(t *testing.T) {
	r := releasetest.New(t)
	s := source(t, r)
	r.Add("v1.9.0", program(t, "nine"), releases.Notes{})
	r.Add("v1.10.0", program(t, "ten"), releases.Notes{Upgrade: "v2", Rollout: 60})
	if err := r.Publish(r.Key("online")); err == nil {
		t.Fatal("it is published without a signature")
	}
	if err := r.Sign(r.Key("c")); err != nil {
		t.Fatal(err)
	}
	if err := r.Publish(r.Key("online")); err == nil {
		t.Fatal("it is published with one signature of two")
	}
	for _, key := range []string{"c", "online"} { // one signs twice, and one may not
		if err := r.Sign(r.Key(key)); err != nil {
			t.Fatal(err)
		}
		if err := r.Publish(r.Key("online")); err == nil {
			t.Fatalf("it is published with another signature of %s", key)
		}
	}
	r.Release()
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Version != "v1.10.0" || list[0].Upgrade != "v2" || list[0].Rollout != 60 ||
		list[1].Version != "v1.9.0" {
		t.Fatalf("%+v, %v", list, err)
	}
	for range 2 { // the second time it is there
		file, err := s.Fetch("v1.10.0")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || string(text) != "ten" {
			t.Errorf("%q, %v", text, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	if _, err := s.Fetch("v3.0.0"); !errors.Is(err, releases.ErrNotThere) {
		t.Error(err)
	}
	if err := r.Folder.Add(r.Archive("v1.9.0", program(t, "other")), list[1].Notes); err == nil {
		t.Error("a release that was signed is changed")
	}
}

// A server cannot give another program, an older list, or a list of other keys.
func TestForgedReleasesAreRefused(t *testing.T) {
	r := releasetest.New(t)
	s := source(t, r)
	r.Add("v1.0.0", program(t, "good"), releases.Notes{})
	r.Release()
	old := map[string][]byte{}
	metadata := filepath.Join(string(r.Folder), "metadata")
	files, err := os.ReadDir(metadata)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if old[f.Name()], err = os.ReadFile(filepath.Join(metadata, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	r.Add("v1.1.0", program(t, "better"), releases.Notes{})
	r.Release()
	if list, err := s.List(); err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	targets, err := filepath.Glob(filepath.Join(string(r.Folder), "targets", "*v1.1.0*"))
	if err != nil || len(targets) != 1 {
		t.Fatal(targets, err)
	}
	text, err := os.ReadFile(targets[0])
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(text)
	bad[len(bad)/2] ^= 1
	for name, forged := range map[string][]byte{"a changed archive": bad, "a longer one": append(bytes.Clone(text), 0)} {
		if err := os.WriteFile(targets[0], forged, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Fetch("v1.1.0"); err == nil {
			t.Errorf("%s is taken", name)
		}
		if _, err := os.Stat(s.Program("v1.1.0")); err == nil {
			t.Errorf("%s is unpacked", name)
		}
	}
	for name, text := range old {
		if err := os.WriteFile(filepath.Join(metadata, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.List(); !errors.Is(err, releases.ErrUntrusted) {
		t.Errorf("an older list: %v", err)
	}
	other := releasetest.New(t)
	other.Add("v9.0.0", program(t, "evil"), releases.Notes{})
	other.Release()
	s.URL = other.URL()
	if list, err := s.List(); !errors.Is(err, releases.ErrUntrusted) {
		t.Errorf("other keys: %+v, %v", list, err)
	}
	s.Dir, s.Root = t.TempDir(), []byte("{}")
	if _, err := s.List(); !errors.Is(err, releases.ErrUntrusted) {
		t.Errorf("no root: %v", err)
	}
}

func TestNotes(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1", "v1.2", "v1.2.3+dirty", "../v1.2.3", "v01.2.3"} {
		if err := (releases.Notes{Version: version}).Check(); err == nil {
			t.Errorf("%q is a version", version)
		}
	}
	if err := (releases.Notes{Version: "v1.2.3-rc.1"}).Check(); err != nil {
		t.Error(err)
	}
}

// Machines switch at times that are spread over the rollout.
func TestRolloutIsSpread(t *testing.T) {
	from := time.Unix(1_000_000_000, 0)
	n := releases.Notes{Version: "v1.0.0", From: from, Rollout: 1000}
	early := 0
	for i := range 1000 {
		at := n.Turn(fmt.Sprint("machine-", i)).Sub(from)
		if at < 0 || at > 1000*time.Second {
			t.Fatalf("a machine switches %s after the beginning of the rollout", at)
		}
		if at <= 250*time.Second {
			early++
		}
	}
	if early < 200 || early > 300 {
		t.Errorf("%d of 1000 machines switch in the first quarter", early)
	}
}
