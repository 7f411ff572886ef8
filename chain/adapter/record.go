package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"cosmossdk.io/collections/codec"

	"github.com/starling-network/starling/canon"
)

// Record stores a value of a pure package as its canonical bytes.
func Record[T any]() codec.ValueCodec[T] { return record[T]{} }

type record[T any] struct{}

func (record[T]) Encode(v T) ([]byte, error) { return canon.Marshal(v) }

func (record[T]) Decode(b []byte) (v T, err error) {
	err = canon.Unmarshal(b, &v)
	return v, err
}

// EncodeJSON writes a value for a genesis, and checks that decoding it loses nothing.
func (r record[T]) EncodeJSON(v T) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	again, err := r.DecodeJSON(text)
	if err != nil {
		return nil, fmt.Errorf("adapter: %T as JSON cannot be read again: %w", v, err)
	}
	before, err := r.Encode(v)
	if err != nil {
		return nil, err
	}
	if after, err := r.Encode(again); err != nil || !bytes.Equal(before, after) {
		return nil, errors.Join(fmt.Errorf("adapter: %T loses something as JSON", v), err)
	}
	return text, nil
}

func (record[T]) DecodeJSON(b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}

func (record[T]) Stringify(v T) string { return fmt.Sprint(v) }

func (record[T]) ValueType() string { return fmt.Sprintf("canon/%T", *new(T)) }

// Text stores values as Record does, but callers get the canonical bytes and decode them when necessary.
func Text[T any]() codec.ValueCodec[[]byte] { return text[T]{} }

type text[T any] struct{ record record[T] }

func (text[T]) Encode(b []byte) ([]byte, error) { return b, nil }

func (text[T]) Decode(b []byte) ([]byte, error) { return b, nil }

func (c text[T]) EncodeJSON(b []byte) ([]byte, error) {
	v, err := c.record.Decode(b)
	if err != nil {
		return nil, err
	}
	return c.record.EncodeJSON(v)
}

func (c text[T]) DecodeJSON(b []byte) ([]byte, error) {
	v, err := c.record.DecodeJSON(b)
	if err != nil {
		return nil, err
	}
	return c.record.Encode(v)
}

func (text[T]) Stringify(b []byte) string { return fmt.Sprintf("%x", b) }

func (c text[T]) ValueType() string { return c.record.ValueType() }
