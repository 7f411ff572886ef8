// Package line writes a secret value, such as an invitation, as one line of text that can be pasted, and reads it from
// the text or from a file that holds it. It does not know the meaning of the fields.
package line

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/starling-network/starling/canon"
)

// Form is the form of the lines of one kind of value: a prefix, and the canonical bytes of the value in base64.
type Form struct {
	Prefix string // names the kind and its version
	Max    int    // bytes of a text
	Err    error  // wrapped by errors about texts that are none of the form
}

// Text is the line of a value: letters, digits, dots, dashes and underscores.
func (f Form) Text(v any) string {
	return f.Prefix + base64.RawURLEncoding.EncodeToString(canon.MustMarshal(v))
}

// Parse reads the value of a text into v. It does not check the fields.
func (f Form) Parse(text string, v any) error {
	text = strings.TrimSpace(text)
	coded, ok := strings.CutPrefix(text, f.Prefix)
	if !ok || len(text) > f.Max {
		return fmt.Errorf("%w: it begins with %s and has at most %d bytes", f.Err, f.Prefix, f.Max)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(coded)
	if err == nil {
		err = canon.Unmarshal(raw, v)
	}
	if err != nil {
		return fmt.Errorf("%w: a part is missing or changed: %w", f.Err, err)
	}
	return nil
}

// Read returns the text that a user gave: itself, or the content of the file of that name.
func (f Form) Read(from string) (text string, err error) {
	if strings.HasPrefix(from, f.Prefix) {
		return from, nil
	}
	file, err := os.Open(from)
	if err != nil {
		return "", fmt.Errorf("%w: %w", f.Err, err)
	}
	content, err := io.ReadAll(io.LimitReader(file, int64(f.Max)+1))
	return string(content), errors.Join(err, file.Close())
}
