// Package evidence is the bytes that a party shows the chain in the last move of a dispute, or to refute a checkpoint:
// the payload of each kind of question, leaves of tensors with their proofs, and the bounds of all of these.
//
// It checks that leaves have the root that they are shown for. Whether a claim is right is decided by chain/referee,
// and chain/referee/witness makes the evidence from an execution.
package evidence

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Errors of evidence.
var (
	ErrPayload  = errors.New("referee: the payload does not answer the question")    // malformed, or not what is agreed
	ErrTooLarge = errors.New("referee: too large to be recomputed inside a dispute") // see referee.Check
)

// Wrong returns an error that wraps ErrPayload.
func Wrong(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrPayload}, args...)...)
}

// Decode reads a payload into v. The error wraps ErrPayload.
func Decode(payload []byte, v any) error {
	if err := canon.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return nil
}
