// Package account defines the accounts of the chain: how the address of a key is written, and how its signatures are
// verified. It needs no module of the chain and no type of the SDK's transactions; package wire encodes the rest.
package account

import (
	"fmt"
	"strings"

	"github.com/cometbft/cometbft/crypto"
	"github.com/cosmos/cosmos-sdk/types/bech32"
)

// Prefix is the first part of every address.
const Prefix = "starling"

// longest is the length of the longest address of the SDK, in bytes.
const longest = 255

// Address writes the bytes of an address, which are those of crypto.PubKey.Address, in Bech32.
func Address(b []byte) string {
	text, err := bech32.ConvertAndEncode(Prefix, b)
	if err != nil {
		panic(err) // bytes of 8 bits always convert
	}
	return text
}

// Check reports the fault of an address, if it has one.
func Check(address string) error {
	_, err := Bytes(address)
	return err
}

// Bytes reads an address.
func Bytes(address string) ([]byte, error) {
	if strings.TrimSpace(address) == "" {
		return nil, fmt.Errorf("an address is empty")
	}
	prefix, b, err := bech32.DecodeAndConvert(address)
	switch {
	case err != nil:
		return nil, err
	case prefix != Prefix:
		return nil, fmt.Errorf("an address begins with %s, not with %s", Prefix, prefix)
	case len(b) == 0 || len(b) > longest:
		return nil, fmt.Errorf("an address has %d bytes, not 1 to %d", len(b), longest)
	}
	return b, nil
}

// Module is the account that holds the coins of a module of the chain, such as "market" with all budgets.
func Module(name string) string { return Address(crypto.AddressHash([]byte(name))) }
