// Package sdk holds the Python of Starling: the client, and the executor, which a worker writes out and starts. It
// needs no installation of its own, and is of the same version as the program that speaks with it.
package sdk

import "embed"

// Executor is the source of the package starling.executor, without the client: the folder executor is to lie in a
// folder starling.
//
//go:embed starling/executor/*.py
var Executor embed.FS
