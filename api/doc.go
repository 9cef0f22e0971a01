// Package api is the root of the module that holds every type a user may write in YAML.
package api
