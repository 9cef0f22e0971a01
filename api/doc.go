// SPDX-License-Identifier: Apache-2.0

// Package api is the root of the module that holds every type a user may write in YAML.
package api
