"""An oracle for certificates: small models in ball arithmetic on all short words, beside what verdicts claim."""
