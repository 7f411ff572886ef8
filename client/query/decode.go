// Package query reads the answers to queries of a chain's state: values in canonical encoding, lists, pages, and the
// error for what is not there.
package query

import (
	"errors"
	"fmt"
	"strings"

	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
)

// ErrNotFoundX is returned for what the chain does not have.
var ErrNotFound = errors.New("client: the chain has no such thing")

// one decodes the value of a query.
func One[T any](b []byte, err error) (v T, _ error) {
	if err != nil {
		return v, Known(err)
	}
	err = canon.Unmarshal(b, &v)
	return v, err
}

// list decodes the values of a query.
func List[T any](values [][]byte, err error) ([]T, error) {
	if err != nil {
		return nil, Known(err)
	}
	all := make([]T, len(values))
	for i, b := range values {
		if err := canon.Unmarshal(b, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// known gives an error of a query its sentinel.
func Known(err error) error {
	if status.Code(err) == codes.NotFound {
		text := status.Convert(err).Message()
		if _, said, wrapped := strings.Cut(text, " desc = "); wrapped { // the error of the query, in that of ABCI
			text = strings.TrimSuffix(said, ": key not found")
		}
		return fmt.Errorf("%w: %s", ErrNotFound, text)
	}
	return err
}

// pages asks for one page after the other.
func Pages(ask func(*sdkquery.PageRequest) (*sdkquery.PageResponse, error)) error {
	next := &sdkquery.PageRequest{Limit: 1000}
	for {
		r, err := ask(next)
		if err != nil {
			return Known(err)
		}
		if r == nil || len(r.NextKey) == 0 {
			return nil
		}
		next = &sdkquery.PageRequest{Key: r.NextKey, Limit: 1000}
	}
}
