package home

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/account/words"
	"github.com/starling-network/starling/client/wallet"
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
	for name, seed := range map[string][32]byte{"zero": {}, "first": {0: 1}, "last": {31: 1},
		"second": {1: 0xff, 31: 0xff}} {
		h := Home{Dir: filepath.Join(t.TempDir(), "a"), secret: words.Secret{Bytes: seed, Digest: seed[1] > 0}}
		words := h.Phrase()
		if n := len(strings.Fields(words)); n != 24 {
			t.Errorf("%s: %d words", name, n)
		}
		back, err := Restore(h.Dir, "  "+strings.ToUpper(strings.ReplaceAll(words, " ", "\n "))+"\n", h.Digest())
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

// The words open the same account as in wallets: the address is what CosmJS 0.39 makes of them with the prefix
// starling.
func TestWordsOpenTheAccountInWallets(t *testing.T) {
	words, address := strings.Repeat("abandon ", 23)+"art", "starling1r5v5srda7xfth3hn2s26txvrcrntldjut84vkt"
	h, err := Restore(filepath.Join(t.TempDir(), "new"), words, false)
	if err != nil || h.Account().Address() != address {
		t.Errorf("%s, want %s (%v)", h.Account().Address(), address, err)
	}
	fresh, _, err := Open(filepath.Join(t.TempDir(), "fresh"))
	if err != nil || fresh.Digest() {
		t.Errorf("a new folder has an account that wallets do not know (%v)", err)
	}
	again, err := Restore(filepath.Join(t.TempDir(), "again"), fresh.Phrase(), false)
	if err != nil || again.Account().Address() != fresh.Account().Address() || again.PeerID() != fresh.PeerID() {
		t.Errorf("the words of a new folder restore another one (%v)", err)
	}
}

// A folder of an older version, whose key has 32 bytes, keeps its account, and so does what its words restore.
func TestOldFoldersKeepTheirAccount(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileKey), make([]byte, 32), 0o600); err != nil {
		t.Fatal(err)
	}
	const address = "starling1ga5n9n0x650zqgwamzwsk4yvh3p3zut55f3q7h"
	old, err := Read(dir)
	if err != nil || !old.Digest() || old.Account().Address() != address {
		t.Fatalf("%s, want %s (%v)", old.Account().Address(), address, err)
	}
	back, err := Restore(filepath.Join(t.TempDir(), "back"), old.Phrase(), true)
	if err != nil || back.Account().Address() != address {
		t.Errorf("%s, want %s (%v)", back.Account().Address(), address, err)
	}
	key, err := hex.DecodeString(old.Account().Hex())
	if err != nil || wallet.NewKey(key).Address() != address {
		t.Errorf("the key that wallets import is of another account (%v)", err)
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
		if _, err := Restore(dir, phrase, false); !errors.Is(err, ErrPhrase) {
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
	if _, err := Restore(dir, strings.Repeat("abandon ", 23)+"art", false); !errors.Is(err, ErrKeyExists) {
		t.Errorf("over a key: %v", err)
	}
	if again, _ := Read(dir); again != h {
		t.Error("the key was overwritten")
	}
}

// The file of a key that other users of the machine may read is named.
func TestExposed(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Open(dir); err != nil {
		t.Fatal(err)
	}
	if path := Exposed(dir); path != "" {
		t.Errorf("a new key: %s", path)
	}
	path := filepath.Join(dir, FileKey)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if Exposed(dir) != path && runtime.GOOS != "windows" {
		t.Errorf("%q", Exposed(dir))
	}
}
