// Locale-dependent methods. On v8 the engine's own are right and stay.

