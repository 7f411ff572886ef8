// Package filler chooses the token that fills up the texts of a job whose rows have one length.
package filler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Token is that of the base model in a folder, or the one with which that ends a text, or the one that ends a document
// for the tokenizer, or else the first number that no token of it has. The folder is "" where there is no base model.
func Token(base string, tok *tokenizer.Tokenizer) (int, error) {
	if base != "" {
		own, found, err := ofModel(base)
		if err != nil || found {
			return own, err
		}
	}
	if end, ok := tok.EndOfText(); ok {
		return int(end), nil
	}
	return tok.VocabSize(), nil
}

// ofModel is the token that the model in a folder has for padding, or for the end of a text, if it has one.
func ofModel(base string) (token int, found bool, err error) {
	var config struct {
		Vocab int  `json:"vocab_size"`
		Pad   *int `json:"pad_token_id"`
		End   any  `json:"eos_token_id"` // one, or a list of them
	}
	raw, err := os.ReadFile(filepath.Join(base, "config.json"))
	if err != nil {
		return 0, false, err
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return 0, false, fmt.Errorf("config.json: %w", err)
	}
	if config.Pad != nil && *config.Pad >= 0 && *config.Pad < config.Vocab {
		return *config.Pad, true, nil
	}
	if list, ok := config.End.([]any); ok && len(list) > 0 {
		config.End = list[0]
	}
	end, ok := config.End.(float64)
	return int(end), ok && end >= 0 && end < float64(config.Vocab), nil
}
