package api

import "embed"

// Source is the source of this package: what /openapi.json takes its descriptions from.
//
//go:embed api.go network.go openai.go
var Source embed.FS
