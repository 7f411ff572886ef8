// Package contracts has the contract by which coins of a network are paid out on an Ethereum-style chain: its source,
// and the output of npm's compiler for it. It executes nothing.
package contracts

import (
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"strings"
)

//go:embed StarlingPayout.json
var compiled []byte

// Contract is a compiled contract.
type Contract struct {
	ABI  json.RawMessage
	Code []byte // that creates it, without its arguments
}

// Payout is the contract StarlingPayout.
func Payout() (Contract, error) {
	var made struct {
		Contracts map[string]struct {
			ABI      json.RawMessage `json:"abi"`
			Bytecode string          `json:"bytecode"`
		} `json:"contracts"`
	}
	if err := json.Unmarshal(compiled, &made); err != nil {
		return Contract{}, err
	}
	c := made.Contracts["StarlingPayout"]
	code, err := hex.DecodeString(strings.TrimPrefix(c.Bytecode, "0x"))
	return Contract{ABI: c.ABI, Code: code}, err
}
