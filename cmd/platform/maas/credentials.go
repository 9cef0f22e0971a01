// SPDX-License-Identifier: Apache-2.0

package maas

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/support/maas"
)

const (
	apiKeyVariable = hyperv1.MAASAPIKeyKey
	userAgent      = "hypershift-cli"
)

// Credentials holds the flags with which a command connects to MAAS.
type Credentials struct {
	endpoint     string
	apiKey       string
	apiKeyFile   string
	caBundleFile string

	// getenv is os.Getenv; tests replace it.
	getenv   func(string) string
	caBundle []byte
}

// NewCredentials returns Credentials that read the environment of the process.
func NewCredentials() Credentials { return Credentials{getenv: os.Getenv} }

// spellings maps the flag names of other MAAS tools to ours.
var spellings = map[string]string{
	"maas-server-url": "maas-endpoint", "endpoint": "maas-endpoint", "api-key": "maas-api-key",
}

func acceptSpellings(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if ours, known := spellings[name]; known {
		name = ours
	}
	return pflag.NormalizedName(name)
}

// AddFlags adds --maas-endpoint and the related flags.
func (c *Credentials) AddFlags(flags *pflag.FlagSet) {
	flags.SetNormalizeFunc(acceptSpellings)
	flags.StringVar(&c.endpoint, "maas-endpoint", "", "URL of MAAS up to and including /MAAS, e.g. https://maas.example.com:5443/MAAS; --maas-server-url and --endpoint are the same")
	flags.StringVar(&c.apiKeyFile, "maas-api-key-file", "", "file with the MAAS API key (consumer:token:secret), \"-\" for standard input (default: $"+apiKeyVariable+")")
	flags.StringVar(&c.apiKey, "maas-api-key", "", "the MAAS API key itself; other users of this computer can read it, so rather use --maas-api-key-file; --api-key is the same")
	flags.StringVar(&c.caBundleFile, "maas-ca-bundle", "", "file with the CAs of MAAS's certificate (PEM)")
}

// Given reports whether any of the flags is set.
func (c *Credentials) Given() bool {
	return c.endpoint != "" || c.apiKey != "" || c.apiKeyFile != "" || c.caBundleFile != ""
}

// Complete checks the flags and reads the files that they name. It warns on stderr, which may be nil, if other users
// can read the key.
func (c *Credentials) Complete(stdin io.Reader, stderr io.Writer) error {
	c.warnOfKey(stderr)
	if err := checkEndpoint(c.endpoint); err != nil {
		return err
	}
	if err := c.readAPIKey(stdin); err != nil {
		return err
	}
	if c.caBundleFile != "" {
		var err error
		if c.caBundle, err = os.ReadFile(c.caBundleFile); err != nil {
			return fmt.Errorf("--maas-ca-bundle: %w", err)
		}
	}
	if warning := maas.PlainHTTP(c.endpoint); warning != "" && stderr != nil {
		fmt.Fprintf(stderr, "Warning: %s (--maas-endpoint, --maas-ca-bundle)\n", warning)
	}
	return nil
}

// warnOfKey warns on stderr, which may be nil, if the key is on the command line.
func (c *Credentials) warnOfKey(stderr io.Writer) {
	if c.apiKey != "" && stderr != nil {
		fmt.Fprintln(stderr, "Warning: other users of this computer can read the key in --maas-api-key, and the shell remembers it: rather use --maas-api-key-file or $"+apiKeyVariable)
	}
}

// Config returns the configuration of the MAAS client. Call it after Complete.
func (c *Credentials) Config() maas.Config {
	return maas.Config{Endpoint: c.endpoint, APIKey: c.apiKey, CABundle: c.caBundle, UserAgent: userAgent}
}

func checkEndpoint(endpoint string) error {
	if endpoint == "" {
		return errors.New("--maas-endpoint is required, e.g. https://maas.example.com:5443/MAAS (or name a Secret by --credentials-secret)")
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return errors.New("--maas-endpoint is not an http or https URL without user, e.g. https://maas.example.com:5443/MAAS")
	}
	return nil
}

// readAPIKey reads the API key. Its errors never contain the key.
func (c *Credentials) readAPIKey(stdin io.Reader) error {
	if c.apiKey != "" && c.apiKeyFile != "" {
		return errors.New("set one of --maas-api-key-file and --maas-api-key")
	}
	if c.apiKeyFile != "" {
		raw, err := readFile(c.apiKeyFile, stdin)
		if err != nil {
			return fmt.Errorf("--maas-api-key-file: %w", err)
		}
		c.apiKey = string(raw)
	}
	if c.apiKey == "" {
		c.apiKey = c.getenv(apiKeyVariable)
	}
	c.apiKey = strings.TrimSpace(c.apiKey)
	if c.apiKey == "" {
		return errors.New("the MAAS API key is required: set --maas-api-key-file (\"-\" for standard input) or the environment variable " + apiKeyVariable)
	}
	if parts := strings.Split(c.apiKey, ":"); len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return errors.New("the MAAS API key is not of the form consumer:token:secret; copy it from MAAS, user preferences, API keys")
	}
	return nil
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, 1<<20))
	}
	return os.ReadFile(name)
}
