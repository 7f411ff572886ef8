// Package keystore reads and writes the files of networks, validators and participants: where they listen, and which
// keys they have. It starts nothing; package home holds the keys of one participant.
package keystore
