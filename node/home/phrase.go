package home

import (
	"fmt"
	"strings"

	"github.com/cosmos/go-bip39"
)

// phraseWords is the length of the phrase of 32 bytes.
const phraseWords = 24

// ParsePhrase is the secret behind words, in any case and with any space between them. Errors wrap ErrPhrase.
func ParsePhrase(phrase string) (secret [32]byte, err error) {
	words := strings.Fields(strings.ToLower(phrase))
	if len(words) != phraseWords {
		return secret, fmt.Errorf("%w: it has %d words, not %d", ErrPhrase, len(words), phraseWords)
	}
	for i, w := range words {
		if _, ok := bip39.ReverseWordMap[w]; !ok {
			return secret, fmt.Errorf("%w: word %d is not in the list of BIP-39", ErrPhrase, i+1)
		}
	}
	checked, err := bip39.MnemonicToByteArray(strings.Join(words, " "))
	if err != nil {
		return secret, fmt.Errorf("%w: its check fails: a word is wrong, or two are swapped", ErrPhrase)
	}
	copy(secret[:], checked) // what follows is the check
	return secret, nil
}
