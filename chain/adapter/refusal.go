// Package adapter is the code that all modules of the chain share between the pure rules of protocol/ and the Cosmos
// SDK: how a record is stored, how a refusal becomes an error code, and the common parts of a module. It has no rules
// and no state.
package adapter

import (
	"errors"
	"fmt"
)

// ErrorCode is one reason for which a module refuses a message. Codes are part of the interface of the chain: the
// meaning of a code never changes.
type ErrorCode struct {
	Code uint32 // from 2; 0 is success and 1 an internal error
	Rule error  // sentinel error of the pure rule
	Fix  string // what the sender can do, one sentence
}

// ErrorTable lists all refusals of one module.
type ErrorTable struct {
	Space string // codespace: the name of the module
	List  []ErrorCode
}

// Wrap adds the code to the error of a rule. An error that is not in the table stays as it is: an internal error.
func (r *ErrorTable) Wrap(err error) error {
	for _, refusal := range r.List {
		if errors.Is(err, refusal.Rule) {
			return &Error{ErrorCode: refusal, Space: r.Space, Text: err.Error()}
		}
	}
	return err
}

// Find returns the refusal with a code.
func (r *ErrorTable) Find(code uint32) (ErrorCode, bool) {
	for _, refusal := range r.List {
		if refusal.Code == code {
			return refusal, true
		}
	}
	return ErrorCode{}, false
}

// Error is a refused message. It unwraps to the sentinel error of the rule, both on the chain and in its clients.
type Error struct {
	ErrorCode
	Space string
	Text  string // what was refused and why
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the sentinel of the rule.
func (e *Error) Unwrap() error { return e.Rule }

// ABCICode is the code in the result of the transaction.
func (e *Error) ABCICode() uint32 { return e.Code }

// Codespace is the name of the module.
func (e *Error) Codespace() string { return e.Space }

// Advice is the error with its code and fix, for people.
func (e *Error) Advice() string { return fmt.Sprintf("%s (%s %d). %s", e.Text, e.Space, e.Code, e.Fix) }

// ErrAuthority is returned for a message that only governance may send.
var ErrAuthority = errors.New("only governance may do this")

// OnlyBy checks that a message comes from the one account that may send it.
func OnlyBy(authority, sender string) error {
	if sender != authority {
		return fmt.Errorf("%w: %s, not %s", ErrAuthority, authority, sender)
	}
	return nil
}
