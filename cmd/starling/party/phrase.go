// Package party has what commands about the folder of a worker, a verifier or a validator share: its log, and the
// phrase that its keys come from. It reads no keys.
package party

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/starling-network/starling/chain/account/words"
)

// OlderFlag says of whose folder the words are.
func OlderFlag(f *pflag.FlagSet, older *bool) {
	f.BoolVar(older, "older", false, "with --restore: the phrase is of a folder whose account wallets do not open with it")
}

// PrintPhrase shows a backup phrase, unless it is empty, what reads it, and what wallets do with it. The key is that of
// the account, if they make another one of the words.
func PrintPhrase(phrase, key, restore string) {
	switch {
	case phrase == "":
	case key == "":
		fmt.Printf("\nbackup phrase, to be kept secret:\n\n  %s\n\nrestore it with: %s\nwallets open the same "+
			"account with it (path %s)\n", phrase, restore, words.Path)
	default:
		fmt.Printf("\nbackup phrase, to be kept secret:\n\n  %s\n\nrestore it with: %s --older\n"+
			"wallets open another, empty account with it; this is the key of the account, which they import:\n\n  %s\n", phrase,
			restore, key)
	}
}

// ReadPhrase reads a phrase, which is a few hundred bytes.
func ReadPhrase(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, 4096))
	return string(text), err
}
