// Package server is the process behind `starling web`: the dashboard of a folder of runs, and the queue of jobs that
// are submitted to it.
package server
