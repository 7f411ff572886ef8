// Package passphrase asks for the passphrases of encrypted keys, in a file or at the terminal, and changes them. It
// holds no keys: internal/keyfile does.
package passphrase

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/internal/keyfile"
)

// Variable names the file with the passphrase of encrypted keys, where --passphrase-file does not.
const Variable = "STARLING_PASSPHRASE_FILE"

// maxPassphrase bounds a file with a passphrase.
const maxPassphrase = 4096

// From tells where passphrases of encrypted keys come from: a file, or else the terminal, which is asked once.
func From(file string) {
	var once sync.Once
	var text string
	var err error
	keyfile.Ask(func(path string) (string, error) {
		once.Do(func() {
			switch {
			case file != "":
				text, err = readPassphrase(file)
			case term.IsTerminal(int(os.Stdin.Fd())):
				text, err = promptPassphrase("passphrase of " + path)
			default:
				err = fmt.Errorf("%w: %s", keyfile.ErrLocked, path)
			}
		})
		return text, err
	})
}

// readPassphrase is the first line of a file.
func readPassphrase(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("%w: %w", keyfile.ErrLocked, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPassphrase))
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); err == nil && line == "" {
		err = fmt.Errorf("%w: %s begins with an empty line", keyfile.ErrLocked, file)
	}
	return line, err
}

func promptPassphrase(what string) (string, error) {
	fmt.Fprint(os.Stderr, what+": ")
	text, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(text), err
}

// newPassphrase is what a key is to be encrypted under: that of a file, or what is typed twice.
func newPassphrase(file string) (string, error) {
	if file != "" {
		return readPassphrase(file)
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return "", terminal.WithExit(&terminal.Problem{
			Code: "USAGE", What: "there is no terminal to type a passphrase at",
			Fix: "give a file with it: --new-passphrase-file",
		}, terminal.ExitUsage)
	}
	one, err := promptPassphrase("new passphrase")
	if err != nil {
		return "", err
	}
	two, err := promptPassphrase("again")
	if err == nil && (one == "" || one != two) {
		err = terminal.WithExit(&terminal.Problem{Code: "USAGE", What: "the two are not the same, or empty",
			Fix: "type a passphrase twice"}, terminal.ExitUsage)
	}
	return one, err
}

// AtRest is the flags that say how a key lies on the disk.
type AtRest struct {
	encrypt, decrypt bool
	file             string
}

// Flags adds them to a command.
func (a *AtRest) Flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&a.encrypt, "encrypt", false, "encrypt the key under a passphrase, or change it")
	f.BoolVar(&a.decrypt, "decrypt", false, "leave the key unencrypted from now on")
	f.StringVar(&a.file, "new-passphrase-file", "", "with --encrypt: file whose first line is the new passphrase "+
		"(default: ask)")
	cmd.MarkFlagsMutuallyExclusive("encrypt", "decrypt")
}

// Change does what the flags say to the key in a file.
func (a *AtRest) Change(path string) error {
	switch {
	case a.encrypt:
		text, err := newPassphrase(a.file)
		if err != nil {
			return err
		}
		return keyfile.Change(path, text)
	case a.decrypt:
		return keyfile.Change(path, "")
	case a.file != "":
		return terminal.WithExit(&terminal.Problem{Code: "USAGE", What: "--new-passphrase-file is for --encrypt",
			Fix: "give both"}, terminal.ExitUsage)
	}
	return nil
}

// Secrecy is how a key lies on the disk, for people.
func Secrecy(encrypted bool) string {
	if encrypted {
		return "encrypted under a passphrase"
	}
	return "not encrypted: anyone who reads the file has the key; --encrypt changes that"
}

// Explain explains why an encrypted key cannot be read.
func Explain(err error) error {
	p := &terminal.Problem{What: err.Error()}
	switch {
	case errors.Is(err, keyfile.ErrLocked):
		p.Code, p.Fix = "KEY_LOCKED", "give its passphrase with --passphrase-file, or "+Variable+", or type it at a terminal"
	case errors.Is(err, keyfile.ErrPassphrase):
		p.Code, p.Fix = "PASSPHRASE_WRONG", "give the right passphrase, or restore the key from its backup phrase in "+
			"another folder"
	default:
		return err
	}
	return terminal.WithExit(p, terminal.ExitAuth)
}
