package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeyIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "home")
	if _, err := Read(dir); !errors.Is(err, ErrNoKey) {
		t.Errorf("nothing there: %v", err)
	}
	first, made, err := Open(dir)
	if err != nil || !made {
		t.Fatal(made, err)
	}
	again, made, err := Open(dir)
	if err != nil || made || again != first {
		t.Errorf("made %v, %v", made, err)
	}
	if first.Account().Address() != again.Account().Address() || first.Derive("a") == first.Derive("b") {
		t.Error("keys do not follow from the secret and their purpose")
	}
	info, err := os.Stat(filepath.Join(dir, FileKey))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the key: %v, %v", info.Mode(), err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	if err := os.WriteFile(filepath.Join(dir, FileKey), make([]byte, 33), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir); !errors.Is(err, ErrBadKey) {
		t.Errorf("33 bytes: %v", err)
	}
}

// The phrases of secrets with leading and trailing zeros are those that a library loses bytes of.
func TestPhraseRestores(t *testing.T) {
	for name, seed := range map[string][32]byte{"zero": {}, "first": {0: 1}, "last": {31: 1}, "second": {1: 0xff, 31: 0xff}} {
		h := Home{Dir: filepath.Join(t.TempDir(), "a"), seed: seed}
		words := h.Phrase()
		if n := len(strings.Fields(words)); n != 24 {
			t.Errorf("%s: %d words", name, n)
		}
		back, err := Restore(h.Dir, "  "+strings.ToUpper(strings.ReplaceAll(words, " ", "\n "))+"\n")
		if err != nil || back != h {
			t.Errorf("%s: %v", name, err)
		}
		if read, err := Read(h.Dir); err != nil || read != h {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The first vector of BIP-39 with 256 bits.
func TestPhraseIsThatOfTheStandard(t *testing.T) {
	want := strings.Repeat("abandon ", 23) + "art"
	if got := (Home{}).Phrase(); got != want {
		t.Errorf("%s", got)
	}
}

func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, phrase := range map[string]string{
		"empty":    "",
		"short":    strings.Repeat("abandon ", 11) + "about",
		"no word":  strings.Repeat("abandon ", 23) + "arrt",
		"checksum": strings.Repeat("abandon ", 24),
	} {
		if _, err := Restore(dir, phrase); !errors.Is(err, ErrPhrase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	h, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(dir, strings.Repeat("abandon ", 23)+"art"); !errors.Is(err, ErrKeyExists) {
		t.Errorf("over a key: %v", err)
	}
	if again, _ := Read(dir); again != h {
		t.Error("the key was overwritten")
	}
}

func TestLockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second lock: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if unlock, err = Lock(dir); err != nil {
		t.Fatal(err)
	}
	_ = unlock()
}
