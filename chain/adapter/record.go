package adapter

import (
	"encoding/json"
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

func (record[T]) EncodeJSON(v T) ([]byte, error) { return json.Marshal(v) }

func (record[T]) DecodeJSON(b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}

func (record[T]) Stringify(v T) string { return fmt.Sprint(v) }

func (record[T]) ValueType() string { return fmt.Sprintf("canon/%T", *new(T)) }
